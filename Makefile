# Needs Go, git and make. The only thing taken from the network is Go modules; with
# CHROMIUM_REQUIRED=1, as in .ci/run, also Debian's Chromium where there is none.

GO      ?= go
BIN     := $(CURDIR)/.bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --verify HEAD 2>/dev/null || echo unknown)
PKG     := github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version
LDFLAGS := -s -w -X $(PKG).version=$(VERSION) -X $(PKG).commit=$(COMMIT)

# One setting for all, so that plugin and tests share the build cache and no C
# compiler is needed.
export CGO_ENABLED := 0

# For the recipes of tests in a browser: finds one, and fails if one is required
# and cannot be installed.
WITH_BROWSER := CHROMIUM="$$(tools/chromium.sh)" && export CHROMIUM &&

.DEFAULT_GOAL := build

.PHONY: build
build: ## Build the plugin into .bin.
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/kubectl-mutate ./cmd/kubectl-mutate

.PHONY: demo
demo: build ## Preview the example policies on the example cluster's manifests; no cluster needed.
	$(BIN)/kubectl-mutate preview -p examples/policies -f examples/cluster --exit-code=false

.PHONY: demo-cluster
demo-cluster: build controlplane ## The same on a real API server: preview, apply, preview again.
	$(GO) -C test/e2e run ./cmd/controlplane run -- $(CURDIR)/examples/demo-cluster.sh $(BIN)

.PHONY: test
test: test-unit test-e2e ## Run all tests.

.PHONY: test-unit
test-unit: ## Run the unit tests, those in a browser if there is one, and the conformance cases with their counts, converted ones too.
	$(WITH_BROWSER) $(GO) test -timeout 30m ./...
	@$(GO) test -v -run '^Test(Convert)?Conformance$$' ./pkg/plugin | grep -E 'conformance |: converted |NOT COMPARED|NO POLICY'

.PHONY: test-browser
test-browser: export CHROMIUM_REQUIRED := 1
test-browser: ## Try the HTML report in headless Chromium; on Debian, root gets it installed.
	$(WITH_BROWSER) $(GO) test -count 1 -run '^TestInABrowser' -v ./pkg/plugin/output/report/html

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME, 10s unless it is set; go on after a finding, and fail at the end.
	@failed=""; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' cmd internal pkg | xargs -n 1 dirname | sort -u); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(f \*testing\.F).*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$dir || failed="$$failed $$dir/$$target"; \
		done; \
	done; test -z "$$failed" || { echo "findings of:$$failed"; exit 1; }

.PHONY: bench
bench: build controlplane ## Measure the program beside the bare work: on files, on a real API server, and writing to it; BENCH="-objects 1000 -runs 5" for others.
	$(GO) build -o $(BIN)/bench-program ./internal/bench
	$(BIN)/bench-program $(BENCH)
	$(GO) -C test/e2e run ./cmd/controlplane run -- sh -c 'cd $(CURDIR) && $(BIN)/bench-program -live $(BENCH)'
	$(GO) -C test/e2e test -run '^$$' -bench Throughput -benchtime 5x .

.PHONY: test-e2e
test-e2e: controlplane ## Run the scripts on a real API server.
	$(GO) -C test/e2e test -timeout 30m ./...

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver and kubectl for the tests, once.
	$(GO) -C test/e2e run ./cmd/controlplane build

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check style and the import rule.
	$(GO) mod verify
	$(BIN)/golangci-lint run ./...
	cd test/e2e && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code.
	$(BIN)/golangci-lint fmt ./...
	cd test/e2e && $(BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...

$(BIN)/golangci-lint: tools/go.mod tools/go.sum
	$(GO) -C tools build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN) dist

.PHONY: help
help: ## Show this list.
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15
