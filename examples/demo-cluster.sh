#!/usr/bin/env bash
# Loads the example cluster into the API server that KUBECONFIG names, previews
# the example policies, applies them, and previews again, which must find
# nothing left. The argument is the directory of the plugin's binary.
set -euo pipefail
PATH=$1:$PATH
cd "$(dirname "${BASH_SOURCE[0]}")"
run() {
  printf '\n$ %s\n' "$*"
  "$@"
}

run kubectl create -f cluster
run kubectl mutate preview -A -p policies --exit-code=false
run kubectl mutate apply-existing -A -p policies --yes
run kubectl mutate preview -A -p policies
