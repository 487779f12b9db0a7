#!/usr/bin/env bash
# Build what is missing, start a cluster, run tests/e2e beside it, and take everything down again, also after a failure.
# usage: e2e.sh [pytest arguments…]      e2e.sh --shell gives a shell with the cluster up      e2e.sh --bench measures the operator
# Logs of the operator and dumps of failed tests are left in out/e2e. Linux, root.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
cache=${ASSAY_CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay-cluster}
netns=${ASSAY_CLUSTER_NETNS:-assay-$$}
home=$(mktemp -d)/cluster
what=${1:-}
mkdir -p "$cache" out/e2e
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
beside=(nsenter "--net=/run/netns/$netns" env "KUBECONFIG=$home/admin.kubeconfig"
  "ASSAY_E2E_KUBECONFIG=$home/admin.kubeconfig" ASSAY_E2E_HOST=10.88.0.1 "ASSAY_E2E_OUT=$root/out/e2e" "ASSAY_E2E_HELM=$cache/bin/helm"
  "ASSAY_E2E_HOME=$home" "PATH=$root/.venv/bin:$PATH")
case "$what" in
  --shell)
    echo "kubectl, kubectl assay and helm reach the cluster; leave with exit"
    "${beside[@]}" env "PATH=$root/.venv/bin:$cache/bin:$PATH" bash || true ;;
  --bench) "${beside[@]}" .venv/bin/python -m tests.bench_operator ;;
  *) "${beside[@]}" .venv/bin/pytest -n 0 "${@:-tests/e2e}" ;;
esac
