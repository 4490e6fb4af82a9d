#!/usr/bin/env bash
# Makes the schemas of Kubernetes' own kinds anew: generate.sh DIRECTORY. They are those of the
# k8s.io/api that go.mod requires. It needs the Go module proxy, and takes a few minutes.
set -euo pipefail
out=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
at() { echo "$1@$(go list -m -f '{{.Version}}' "$2")"; }
modules=("$(at k8s.io/api k8s.io/api)" "$(at k8s.io/apimachinery k8s.io/apimachinery)"
	"$(at k8s.io/kube-openapi/cmd/openapi-gen k8s.io/kube-openapi)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir generated
go mod init schemas
go get "${modules[@]}"
# Admission reviews and the like are never objects.
mapfile -t packages < <(go list k8s.io/api/... | grep -Ev '/(apidiscovery|imagepolicy|testing|roundtrip)')
go run k8s.io/kube-openapi/cmd/openapi-gen --go-header-file /dev/null --report-filename violations \
	--output-dir generated --output-pkg schemas/generated --output-file definitions.go \
	k8s.io/apimachinery/pkg/{api/resource,apis/meta/v1,runtime,util/intstr} "${packages[@]}"
cp "$here/write.go" .
rm -f "$out"/*.json
go run write.go "$out"
