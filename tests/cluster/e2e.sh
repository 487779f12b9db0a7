#!/usr/bin/env bash
# Bring a cluster, run tests/e2e beside it, and take down what was brought, also after a failure.
# usage: e2e.sh [pytest arguments…]      e2e.sh --shell gives a shell with the cluster up      e2e.sh --bench measures the operator
# ASSAY_E2E_PROVIDER: built (a one-node Kubernetes from package registries; Linux, root), kind (Docker and kind), existing (a kubeconfig).
# Logs of the operator and dumps of failed tests are left in out/e2e.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
cache=${ASSAY_CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay-cluster}
home=$(mktemp -d)/cluster
what=${1:-}
mkdir -p out/e2e
beside=(env "ASSAY_E2E_OUT=$root/out/e2e")

built() {
  local netns=${ASSAY_CLUSTER_NETNS:-assay-$$} with
  mkdir -p "$cache"
  echo "building the cluster's programs in $cache (7 to 15 minutes the first time)"
  bash tests/cluster/build.sh "$cache" >/dev/null
  if [ "$what" = --bench ]; then
    with=(--kwok-nodes 4)
  else
    echo "building the images"
    bash tests/cluster/images.sh "$cache"
    with=(--image "$cache/agent.oci" --image "$cache/operator.oci")
  fi
  trap 'python3 tests/cluster/cluster.py down --home "$home"; rm -rf "$(dirname "$home")"' EXIT
  echo "starting the cluster"
  python3 tests/cluster/cluster.py up --bin "$cache/bin" --home "$home" --netns "$netns" "${with[@]}" >/dev/null
  beside=(nsenter "--net=/run/netns/$netns" "${beside[@]}" "KUBECONFIG=$home/admin.kubeconfig"
    "ASSAY_E2E_KUBECONFIG=$home/admin.kubeconfig" ASSAY_E2E_HOST=10.88.0.1 "ASSAY_E2E_HELM=$cache/bin/helm"
    "ASSAY_E2E_HOME=$home" "PATH=$root/.venv/bin:$cache/bin:$PATH")
  only=()
}

kind() {
  mkdir -p "$home"
  trap 'command kind delete cluster --name assay-e2e; rm -rf "$(dirname "$home")"' EXIT
  command kind create cluster --name assay-e2e --kubeconfig "$home/kubeconfig"
  for target in agent operator; do
    docker build --quiet -f images/Dockerfile --target "$target" --build-arg "EXTRAS=agent postgres litellm" -t "localhost/assay-$target:e2e" .
    command kind load docker-image --name assay-e2e "localhost/assay-$target:e2e"
  done
  ASSAY_E2E_HOST=$(docker network inspect kind -f '{{range .IPAM.Config}}{{println .Gateway}}{{end}}' | grep -m1 '\.') existing "$home/kubeconfig"
}

existing() {
  : "${ASSAY_E2E_HOST:?an address of this machine that pods reach is needed}"
  local kubeconfig=${1:-${ASSAY_E2E_KUBECONFIG:?the kubeconfig of a cluster is needed}}
  beside+=("KUBECONFIG=$kubeconfig" "ASSAY_E2E_KUBECONFIG=$kubeconfig" "ASSAY_E2E_HOST=$ASSAY_E2E_HOST" "PATH=$root/.venv/bin:$PATH")
  only=(-m "not built") # its processes, its node and its network are not ours
}

case "${ASSAY_E2E_PROVIDER:-built}" in
  built | kind | existing) "${ASSAY_E2E_PROVIDER:-built}" ;;
  *) echo "ASSAY_E2E_PROVIDER is '$ASSAY_E2E_PROVIDER'; it may be built, kind or existing" >&2; exit 10 ;;
esac
case "$what" in
  --shell)
    echo "kubectl, kubectl assay and helm reach the cluster; leave with exit"
    "${beside[@]}" bash || true ;;
  --bench) "${beside[@]}" .venv/bin/python -m tests.bench_operator ;;
  *) "${beside[@]}" .venv/bin/pytest -n 0 "${only[@]}" "${@:-tests/e2e}" ;;
esac
