# Sluice. `make` prints what there is.

GO      ?= go
BIN     := bin/sluice
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -X github.com/sluicegw/sluice/cmd/sluice/version.release=$(VERSION)
# The race detector needs a C compiler; without one the tests run plain.
RACE    := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
# Tests of these packages have fewer clients and events under the race detector; they run without it too.
REDUCED := ./graph/transport
BENCH   ?= .
# need,program,packages,text: Debian's packages are installed if the program is missing and nobody has to be asked.
need     = @command -v $(1) >/dev/null 2>&1 && exit 0; \
  root=; [ "$$(id -u)" = 0 ] || root='sudo -n'; \
  if command -v apt-get >/dev/null 2>&1 && $$root true 2>/dev/null; then \
    $$root apt-get update -qq && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2); \
  fi; \
  command -v $(1) >/dev/null 2>&1 || { echo $(3); exit 1; }
FUZZTIME ?= 20s

.DEFAULT_GOAL := help
.PHONY: help run build release npm-package helm helm-update portable npm console test test-all test-packages test-e2e test-next vulnerabilities redis-server tmux python postgres promtool alerts browser clients generate generate-check lint bench bench-live fuzz e2e hostile clean

help: ## print this help
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build and serve on 127.0.0.1:8080, data in ./sluice-data
	@echo 'building $(BIN): the first time, modules are fetched and all packages compiled'
	@of=$$($(GO) list -deps ./cmd/sluice | wc -l); \
	{ $(GO) build -v -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/sluice 2>&1 || echo 'the build failed'; } | awk -v of="$$of" ' \
	  /^[^ :#]+$$/ { if (++n % 25 == 0) { print n " of at most " of " packages compiled"; fflush() } next } \
	  { print } /^the build failed$$/ { failed = 1 } END { exit failed }'
	$(BIN) serve

build: ## build bin/sluice, with GraphiQL where there is npm
	@if command -v npm >/dev/null 2>&1; then graph/console/fetch.sh || echo 'GraphiQL was not fetched; a plain page stands in for it'; fi
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/sluice

release: console ## build what is released into dist: archives and packages for all systems, checksums, the list of components
	rm -rf dist
	$(GO) run ./cmd/sluicerelease -version '$(VERSION)'

npm-package: npm ## pack the package for pages into dist, as a registry takes it
	test -x e2e/clients/node_modules/.bin/tsc || npm --prefix e2e/clients ci --no-audit --no-fund
	mkdir -p dist
	cd graph/client/js && PATH="$(CURDIR)/e2e/clients/node_modules/.bin:$$PATH" npm pack --pack-destination '$(CURDIR)/dist'

helm: ## render the chart in deploy/helm by Helm's own code and check what comes out by the types of Kubernetes
	cd deploy/helm/check && $(GO) test -count=1 ./...

helm-update: ## the same, and keep what is rendered in deploy/helm/testdata
	cd deploy/helm/check && $(GO) test ./... -update

portable: ## fail if the code of the binary is not valid on macOS or Windows
	$(GO) run ./cmd/sluicerelease -check -targets darwin/arm64,windows/amd64

console: npm ## fetch GraphiQL for the page at /, checked by its hashes; does nothing the second time
	graph/console/fetch.sh

# e2e takes longest, so it begins first.
TESTED := ./e2e ./...
# Many tests wait for processes or the clock, so one package more than there are cores is tested at a time.
AT_ONCE = -p $$(($$(getconf _NPROCESSORS_ONLN) + 1))

test: redis-server tmux python postgres ## vet and run the tests, the long ones smaller or not at all: four minutes on two cores
	$(GO) vet ./...
	$(GO) test -short -vet=off -shuffle=on $(AT_ONCE) -timeout 9m $(TESTED)

# e2e drives the built binary and waits for it most of the time, so it runs beside the packages.
test-all: redis-server tmux python postgres ## vet and run all tests in full, with the race detector where there is a C compiler: twenty minutes
	$(GO) vet ./...
	$(MAKE) --no-print-directory -j 2 test-packages test-e2e

# These read files and run programs: the race detector has nothing to look at.
PLAIN := ./cmd/sluicerelease ./internal/arch

# One package at a time, since e2e runs beside them.
test-packages:
	$(if $(RACE),CGO_ENABLED=1) $(GO) test $(RACE) -p 1 -vet=off -shuffle=on -timeout 20m $$($(GO) list ./... | grep -v -e '/e2e$$' $(PLAIN:.%=-e '%$$'))

# On Redis without the race detector, which is of no use to what drives a binary: it looks once at the tests themselves.
# The binary is built with the variables of make, not with those of the race detector.
test-e2e:
	$(if $(RACE),CGO_ENABLED=1) $(GO) test $(RACE) -exec 'env CGO_ENABLED=$(CGO_ENABLED)' -vet=off -shuffle=on -timeout 20m ./e2e
	SLUICE_TEST_STORE=redis $(GO) test -vet=off -shuffle=on -timeout 20m ./e2e
	$(GO) test -vet=off -shuffle=on -timeout 9m $(PLAIN)
	$(if $(RACE),$(GO) test -vet=off -shuffle=on -timeout 9m $(REDUCED))

# The release of Go after that of go.mod, and the tool that looks for known vulnerabilities.
NEXT_GO     := go1.27.4
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

test-next: redis-server tmux python postgres ## run the tests of packages as `make test` does with the next release of Go, if it can be had
	@if GOTOOLCHAIN=$(NEXT_GO) $(GO) version >/dev/null 2>&1; then GOTOOLCHAIN=$(NEXT_GO) $(MAKE) --no-print-directory test TESTED="$$($(GO) list ./... | grep -v '/e2e$$' | tr '\n' ' ')"; \
	else echo 'WARNING: $(NEXT_GO) cannot be had, so nothing was tested with it'; fi

vulnerabilities: ## fail if code that is used has a known vulnerability, if the database of those answers
	@if ! curl -fsS -m 20 -o /dev/null https://vuln.go.dev/index/db.json; then \
	  echo 'WARNING: https://vuln.go.dev does not answer, so nothing was checked for known vulnerabilities'; \
	else $(GO) run $(GOVULNCHECK) ./...; fi

redis-server: ## make sure that the tests find redis-server; install Debian's package if they would not
	$(call need,redis-server,redis-server,'the tests start redis-server 7.0 or newer; install it (Debian: apt-get install redis-server)')

tmux: ## make sure that the tests find tmux, in which they look at the command line as a person does
	$(call need,tmux,tmux,'the tests of the terminal need tmux (Debian: apt-get install tmux)')

python: ## make sure that the tests find python3, in which a resource service of the examples is written
	$(call need,python3,python3,'the tests of resource services need Python 3.9 or newer (Debian: apt-get install python3)')

# Debian keeps the programs of the server out of the search path.
postgres: ## make sure that the tests find PostgreSQL, in which a resource service of the examples keeps its resources
	$(call need,initdb >/dev/null 2>&1 || command -v /usr/lib/postgresql/*/bin/initdb,postgresql,'the tests of resource services start PostgreSQL 13 or newer; install it (Debian: apt-get install postgresql)')

promtool:
	$(call need,promtool,--no-install-recommends prometheus,'the alerts are tested by promtool of Prometheus (Debian: apt-get install prometheus)')

alerts: promtool ## check the alerts of deploy/prometheus and run their tests
	promtool check rules deploy/prometheus/alerts.yaml
	promtool test rules deploy/prometheus/alerts_test.yaml

npm:
	$(call need,npm,nodejs npm,'this needs Node.js 20 or newer with npm (Debian: apt-get install nodejs npm)')

browser: ## make sure that the tests find Chromium and Caddy; install Debian's packages if they would not
	$(call need,chromium,chromium,'the tests of the page need Chromium (Debian: apt-get install chromium)')
	$(call need,caddy,caddy,'the tests of the page behind a proxy need Caddy (Debian: apt-get install caddy)')

# What other people's clients do with the schema and the page alone, whatever the store is.
STORELESS := /^(login|ides|proxy|playground|schema|codegen|editor|genqlient|versions|package)$$

clients: console browser redis-server ## drive the built binary, on both stores, by other people's clients and a browser (needs npm)
	$(GO) test -tags clients -count=1 -timeout 20m -v -run '^Test(Clients|Browser)' ./e2e
	SLUICE_TEST_STORE=redis $(GO) test -tags clients -count=1 -timeout 20m -v -run '^Test(Clients|Browser)' -skip '$(STORELESS)' ./e2e

generate: ## generate graph/core from schema/core, for fields that are resolved by hand, the candidate in schema/v1/versions, and the Go types of schema/service and schema/kms
	$(GO) run ./cmd/sluicegen

generate-check: generate ## fail if what is committed of graph/core, schema/v1/versions and schema/service is not what the schema gives
	@git diff --exit-code --stat -- graph resolvers schema || { echo "generated files differ: commit what 'make generate' wrote"; exit 1; }
	@test -z "$$(git ls-files --others --exclude-standard -- graph resolvers schema)" || { echo "generated files are not committed"; git ls-files --others --exclude-standard -- graph resolvers schema; exit 1; }

lint: ## gofmt, vet and staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet -tags clients,hostile ./...
	$(GO) tool staticcheck -tags clients,hostile ./...

bench: redis-server ## run the benchmarks (BENCH=pattern narrows them)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./backend/... ./graph/server/... ./graph/transport

bench-live: ## measure deliveries to 1,000 listeners, beside raw writes and gqlgen's own WebSocket transport, and 5,000 that are idle
	$(GO) test -run '^$$' -bench '^Benchmark(Live|Idle)' -benchtime 3s ./graph/transport

fuzz: ## fuzz every decoder for FUZZTIME each
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
	  done; \
	done

e2e: redis-server tmux console browser ## drive the built binary from outside, by other people's clients and a browser too
	$(if $(RACE),CGO_ENABLED=1) $(GO) test -tags clients $(RACE) -count=1 -timeout 15m ./e2e/...

hostile: ## measure what hostile clients cost the built gateway, CPU and memory; HOSTILE_SEED and HOSTILE_DOCUMENTS choose the random ones (Linux)
	$(GO) test -tags hostile -count=1 -parallel 2 -timeout 15m -v -run '^TestHostile$$' ./e2e

clean: ## remove what was built
	rm -rf bin dist graph/console/dist/*
