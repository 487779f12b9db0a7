#!/usr/bin/env bash
# Build both images from images/Dockerfile over a local base, and leave them as archives in CACHE_DIR.
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
  echo "$name: $(buildah inspect --type image --format '{{.FromImageID}}' "$name" | cut -c1-12), $(du -m "$out/$target.oci" | cut -f1) MB compressed"
done
