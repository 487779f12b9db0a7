#!/usr/bin/env bash
# Build both images from images/Dockerfile over a local base, and leave them as archives in CACHE_DIR; print size, packages, start time.
# usage: images.sh CACHE_DIR [agent|operator]      (about 3 minutes the first time; EXTRAS names the agent's extras)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
export STORAGE_DRIVER=overlay BUILDAH_ISOLATION=chroot
for target in ${2:-agent operator}; do
  name=localhost/assay-$target:e2e
  buildah bud --quiet --layers --network host -v /etc/ssl/certs:/etc/ssl/certs:ro \
    --build-arg BASE="${BASE:-localhost/python-base:bookworm}" --build-arg EXTRAS="${EXTRAS:-agent postgres litellm}" \
    --ignorefile "$root/.dockerignore" -f "$root/images/Dockerfile" --target "$target" -t "$name" "$root" >/dev/null
  rm -f "$out/$target.oci"
  buildah push --quiet "$name" "oci-archive:$out/$target.oci:$name"
  # As an arbitrary user, who owns nothing in it; the time is that of `--help`, its imports included.
  box=$(buildah from --pull-never "$name")
  trap 'buildah rm "$box" >/dev/null' EXIT
  packages=$(buildah run --user 54321:0 "$box" -- python3 -c 'import importlib.metadata as m; print(len(list(m.distributions())))')
  for _ in first second; do
    began=$(date +%s%N)
    buildah run --user 54321:0 "$box" -- "assay-$target" --help >/dev/null
    took=$(( ($(date +%s%N) - began) / 1000000 ))
  done
  buildah rm "$box" >/dev/null
  trap - EXIT
  echo "$name: $(buildah inspect --type image --format '{{.FromImageID}}' "$name" | cut -c1-12), $(du -m "$out/$target.oci" | cut -f1) MB compressed, $packages packages, answers in $took ms"
done
