{{- define "assay.fullname" -}}
{{- if contains "assay" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-assay" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "assay.selector" -}}
app.kubernetes.io/name: assay-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "assay.image" -}}
{{- $image := index . 0 }}{{ $chart := index . 1 -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag | default $chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "assay.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "assay.fullname" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end }}

{{/* Namespaces of runs that the chart furnishes, as a JSON list. */}}
{{- define "assay.tenants" -}}
{{- if eq .Values.scope "cluster" }}{{ .Values.tenants | toJson }}{{ else }}{{ list .Release.Namespace | toJson }}{{ end -}}
{{- end }}

{{- define "assay.storesSecret" -}}
{{ .Values.stores.existingSecret | default (printf "%s-stores" (include "assay.fullname" .)) }}
{{- end }}

{{- define "assay.modelSecret" -}}
{{- if .Values.model.existingSecret }}{{ .Values.model.existingSecret }}{{ else if .Values.model.apiKey }}{{ include "assay.fullname" . }}-model{{ end -}}
{{- end }}

{{- define "assay.podSecurity" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
