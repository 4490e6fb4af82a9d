# Needs Go, git and make. The only thing taken from the network is Go modules; with
# CHROMIUM_REQUIRED=1, as at night, also Debian's Chromium where there is none.

GO      ?= go
BIN     := $(CURDIR)/.bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --verify HEAD 2>/dev/null || echo unknown)
PKG     := github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process
LDFLAGS := -s -w -X $(PKG).version=$(VERSION) -X $(PKG).commit=$(COMMIT)

# One setting for all, so that plugin, tests, tools and control plane share the build
# cache and no C compiler is needed.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath

# For the recipes of tests in a browser: finds one, and fails if one is required
# and cannot be installed.
WITH_BROWSER := CHROMIUM="$$(tools/chromium.sh)" && export CHROMIUM &&

.DEFAULT_GOAL := build

.PHONY: build
build: ## Build the plugin into .bin.
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/kubectl-mutate ./cmd/kubectl-mutate

.PHONY: demo
demo: build ## Preview the example policies on the example cluster's manifests; no cluster needed.
	$(BIN)/kubectl-mutate preview -p examples/policies -f examples/cluster --exit-code=false

.PHONY: demo-cluster
demo-cluster: build controlplane ## The same on a real API server: preview, apply, preview again.
	$(GO) -C test/e2e run ./cmd/controlplane run -- $(CURDIR)/examples/demo-cluster.sh $(BIN)

# The cases of other projects, which are not in the repository; docs/maintaining.md
# says what the folder holds. Without it the tests say that these are not run.
export CONFORMANCE_DIR ?= $(wildcard $(CURDIR)/../shared/conformance)

# lint vets the tests. Without the data of debuggers a test program is linked in two thirds of the time.
TESTFLAGS := -vet=off -ldflags=-w -timeout 30m

TESTSUM := $(BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg

# The control plane and its tests take longest: what runs beside them waits for them.
BESIDE := nice -n 5

.PHONY: test
test: test-unit test-e2e ## Run what a push needs, and name the ten slowest tests.
	@echo "The slowest tests, in seconds of a machine that ran others beside them:"
	@cat $(BIN)/unit.json $(BIN)/e2e.json | $(BIN)/gotestsum tool slowest --num 10

.PHONY: test-unit
test-unit: $(BIN)/gotestsum ## Run the unit tests, with TEST_ALL those in a browser if there is one, and the conformance cases with their counts.
	$(WITH_BROWSER) $(BESIDE) $(TESTSUM) --jsonfile $(BIN)/unit.json -- $(TESTFLAGS) ./...
	@sed -n 's/.*"Output":" *\(conformance .*\|.*: converted .*\|.*CONFORMANCE_DIR.*\)\\n".*/\1/p' $(BIN)/unit.json | sort -u

.PHONY: test-all
test-all: export TEST_ALL := 1
test-all: test test-race ## Run everything: all seeds, all tables, the slow cross products, and the race detector.

.PHONY: test-race
test-race: $(BIN)/gotestsum ## Run the unit tests with the race detector, which needs a C compiler.
	CGO_ENABLED=1 $(TESTSUM) -- -race -timeout 60m ./...

# What differs between operating systems: files, locks, owners, signals, paths, terminals.
PLATFORM := ./cmd/... ./internal/... ./pkg/plugin/file ./pkg/plugin/input ./pkg/plugin/output/... \
	./pkg/plugin/process ./pkg/plugin/undo ./pkg/plugin/wording ./pkg/plugin/write/...

.PHONY: test-platform
test-platform: build ## Vet everything, and run the unit tests of what differs between operating systems.
	$(GO) vet ./...
	$(GO) test $(PLATFORM)

.PHONY: test-browser
test-browser: export CHROMIUM_REQUIRED := 1
test-browser: export TEST_ALL := 1
test-browser: ## Try the HTML report in headless Chromium; on Debian, root gets it installed.
	$(WITH_BROWSER) $(GO) test -count 1 -run '^TestInABrowser' -v ./pkg/plugin/output/report

.PHONY: pictures
pictures: export CHROMIUM_REQUIRED := 1
pictures: ## Make the pictures of README.md and docs anew, from runs of the program; takes Chromium.
	$(WITH_BROWSER) $(GO) test -count 1 ./test/pictures -update

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
test-e2e: controlplane $(BIN)/gotestsum ## Run the tests on a real API server.
	cd test/e2e && $(TESTSUM) --jsonfile $(BIN)/e2e.json -- $(TESTFLAGS) ./...

JUDGE := -n 2000

.PHONY: judge
judge: build ## Compare policies with their conversions by Kyverno's own programs, which are built once; hours. JUDGE="-n 200 -run ^hard/" for less.
	$(GO) -C test/judge build -o $(BIN)/judge .
	nice $(BIN)/judge -source $(CURDIR) -bin $(BIN) $(JUDGE) >$(BIN)/judge.md

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver and kubectl for the tests, once.
	$(GO) -C test/e2e run ./cmd/controlplane build

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/actionlint ## Check style, the import rule and the workflows.
	$(GO) mod verify
	$(BIN)/actionlint
	$(BESIDE) $(BIN)/golangci-lint run ./...
	cd test/e2e && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/judge && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...

.PHONY: vulnerabilities
vulnerabilities: $(BIN)/govulncheck ## Look for known vulnerabilities that the program can reach; asks vuln.go.dev.
	$(BIN)/govulncheck ./...

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code.
	$(BIN)/golangci-lint fmt ./...
	cd test/e2e && $(BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...
	cd test/judge && $(BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...

$(BIN)/golangci-lint: TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/govulncheck:   TOOL := golang.org/x/vuln/cmd/govulncheck
$(BIN)/gotestsum:     TOOL := gotest.tools/gotestsum
$(BIN)/golangci-lint $(BIN)/govulncheck $(BIN)/gotestsum: tools/go.mod tools/go.sum
	$(BESIDE) $(GO) -C tools build -o $@ $(TOOL)

# A module of its own: it needs another version of a library than golangci-lint.
$(BIN)/actionlint: tools/actionlint/go.mod tools/actionlint/go.sum
	$(BESIDE) $(GO) -C tools/actionlint build -o $@ github.com/rhysd/actionlint/cmd/actionlint

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN) dist

.PHONY: help
help: ## Show this list.
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15
