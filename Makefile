# Everything a person types. `make demo` shows the product at work, `make test`
# passes the tests; both need nothing but Go and npm.

GO      ?= go
BIN     := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOLS   := $(GO) tool -modfile=core/internal/tools/go.mod

# The race detector needs a C compiler, which Go and npm do not bring. Without one the
# tests run without it, and say so.
CGO  := $(shell $(GO) env CGO_ENABLED)
RACE := $(if $(filter 1,$(CGO)),-race)

# Everything else is built without C, as the executables are, and with the same flags: each other
# combination has the compiler do its minutes of work once more.
export CGO_ENABLED := 0

.PHONY: build cross demo test unit lint vulncheck bench bench-backlog bench-otlp bench-queries chaos security sbom release release-test upgrade-test mutate cross-check conformance conformance-update dashboards browser python typescript generate engine clean

build: $(BIN)
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/earshot ./cmd/earshot
	$(GO) build -ldflags '-s -w' -o $(BIN)/earshot-store ./cmd/earshot-store
	@$(MAKE) --no-print-directory engine || echo 'built without the engine of the embedded store: earshot up, run and demo fetch it when they start'

$(BIN):
	@mkdir -p $(BIN)

# Compiles and vets everything for each platform that agents run on, tests too, and the program
# without the engine for Windows. Nothing is run: the README names the untested parts.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
cross:
	@for p in $(PLATFORMS); do echo $$p; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./... && GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || exit 1; done
	@echo windows/amd64; GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/earshot && GOOS=windows GOARCH=amd64 $(GO) vet ./cmd/earshot

# The part of cross that CI can afford, in lint: types alone, half a minute of processor time for all
# platforms, where go vet with an empty cache takes four minutes for one.
cross-check:
	@$(GO) run -C core/internal/tools ./crosscheck '$(CURDIR)'

demo: build
	@$(BIN)/earshot demo

# The whole test suite: everything that CI runs. The speed of decoders is measured first, on a machine that does nothing else.
# Then there are two lanes, so that the processors have work while a test waits: the tests with the race detector, which has
# everything compiled for itself, and all else, one after the other. The last line is that of a test.
# ALSO=pages adds a target to the second lane, TAGS=python,typescript the decoders in these languages.
ALSO ?=
TAGS ?=
test: build
	@test -n '$(RACE)' || echo 'no C compiler: the tests run without the race detector'
	@$(MAKE) --no-print-directory conformance
	@code=0; EARSHOT_TEST_BIN='$(abspath $(BIN))' $(MAKE) --no-print-directory CGO=$(CGO) -k -j2 raced serial $(ALSO) decoders lint collector || code=$$?; \
	$(MAKE) --no-print-directory installed && exit $$code

# The race detector finds nothing in packages whose tests only drive programs, which are built without it, and in those that start
# no goroutine, nor do the packages that they import (core/internal/archtest checks that of ALONE). A decoder is one
# goroutine's: package plugins runs all of them in parallel under it, and conformance has run the whole suite. Under it
# core/internal/pipeline replays a part of their cases, and target decoders all.
DRIVE   := bench/.*|dashboards|core/decoder/conformance/internal/mutants
ALONE   := dashboards/(board|internal/macro)|cmd/earshot-store/internal/(native|release|sqltext)|core/(attach|attribution|blame|change|discover|frame|interchange|loopback|msg|pages|price|proto|retry|semconv|verdict)(/.*)?|core/config(/spec)?|core/sdk/.*|core/ui/address|core/internal/(anomaly|archtest|assemble|checkpoint|deadletter|erasure|segment|source/timing|spool|wire)(/.*)?|exporters/clickhouse/internal/native
TESTED  := $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v /plugins/)
SERIAL  := earshot/($(DRIVE)|$(ALONE))$$

# Vetted by lint. go test begins with the packages that are named first: those that take longest.
.PHONY: raced serial decoders collector installed
raced:
	CGO_ENABLED=$(CGO) $(GO) test $(RACE) -tags '$(TAGS)' -vet=off -p 2 -shuffle=on -timeout 40m \
		./exporters/clickhouse ./cmd/earshot ./core/internal/pipeline $$(echo "$(TESTED)" | grep -Ev '$(SERIAL)')
serial:
	$(GO) test -vet=off -p 2 -shuffle=on -timeout 40m ./bench/e2e ./bench/chaos ./dashboards $$(echo "$(TESTED)" | grep -E '$(SERIAL)')
decoders:
	$(GO) test -vet=off -run '^TestPausesDoNotShow$$' ./core/internal/pipeline
	$(GO) test -short -vet=off -p 2 -shuffle=on ./plugins/...

# Modules of their own: spans through a real collector, which takes a minute or two to build once, and the changes of a small package.
collector: vettool
	cd bench/collector && $(VET) . && $(GO) test -vet=off -timeout 15m .
	$(GO) test -C core/internal/tools -count=1 -vet=off -run '^Test(Changes|External)$$' ./mutate ./own

# A deb of the programs in bin, installed in an empty root.
installed:
	$(GO) test -C core/internal/tools -count=1 -timeout 15m -run '^TestInstall$$' ./release

# The unit tier: no engine, no race detector, no processes of the product but decoders;
# under three minutes on two cores. make unit PKG=./core/msg/... runs a part of it.
WHOLE := /bench/|/cmd/earshot-store$$|/cmd/earshot-store/internal/engine$$|/dashboards$$|/mutants$$
PKG   ?= $(shell $(GO) list ./... | grep -Ev '$(WHOLE)')
unit:
	$(GO) test -short -timeout 5m $(PKG)

# Facts of other modules are left out of vet: to know them takes longer than to vet what is here.
VET = VET="$$($(GO) tool -n vet)" $(GO) vet -vettool='$(abspath $(BIN))/vet'
.PHONY: vettool
vettool:
	@$(GO) build -C core/internal/tools -o '$(abspath $(BIN))/vet' ./vet

lint: vettool
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'gofmt these files'; exit 1; }
	$(VET) -tags python,typescript,upgrade ./...
	$(GO) run -C core/internal/tools ./staticcheck '$(CURDIR)' ./...
	@dead="$$($(TOOLS) deadcode -test ./...)" && test -z "$$dead" || { echo "$$dead"; echo 'no program and no test reaches these functions'; exit 1; }
	@$(MAKE) --no-print-directory cross-check vulncheck

# Known vulnerabilities in what the binaries call. The database is on the network: where
# it cannot be reached, nothing is checked and the line below says so.
vulncheck:
	@out="$$($(TOOLS) govulncheck ./cmd/... 2>&1)"; code=$$?; \
	case "$$code,$$out" in \
	0,*) echo 'govulncheck: no known vulnerability is reachable' ;; \
	*"fetching vulnerabilities"*) echo 'govulncheck: the vulnerability database cannot be reached: nothing was checked' ;; \
	*) echo "$$out"; exit 1 ;; \
	esac

# Every bundled decoder, as a process, against the conformance suite; and its speed, in one
# process, against bench/decoders.json, which conformance-update writes.
conformance: build
	@$(GO) run ./bench/cmd/conformance $(BIN)/earshot plugins bench/decoders.json
conformance-update: build
	@$(GO) run ./bench/cmd/conformance -speed -update $(BIN)/earshot plugins bench/decoders.json

# Writes the dashboards and alert rules anew, and runs every query of them on the
# engine: panel, rows, milliseconds.
dashboards: engine
	$(GO) generate ./dashboards
	$(GO) test ./dashboards/... -count=1 -v -run 'TestEveryQueryAnswers|TestFilesAreAsWritten|TestNumbersAreTrue|Sound|Lead'

# Holds decoders that are written in Python to the conformance suite; needs Python with
# gRPC (Debian: python3-grpcio python3-protobuf), or pip and its registry.
python:
	CGO_ENABLED=$(CGO) $(GO) test $(RACE) -vet=off -count=1 -tags python -run Python ./core/decoder/conformance ./cmd/earshot

# The same for TypeScript; needs Node.js 20 and npm, which installs what the decoder imports.
typescript:
	CGO_ENABLED=$(CGO) $(GO) test $(RACE) -vet=off -count=1 -tags typescript -run TypeScript ./core/decoder/conformance ./cmd/earshot

# Opens `earshot ui` in a headless Chromium and looks at every page; fails without
# one. make browser SHOTS=/tmp/ui leaves pictures of what it saw.
SHOTS ?=
# make browser APPROVE=1 writes what TestApproved compares with: read the difference.
APPROVE ?=
browser: build
	@$(MAKE) --no-print-directory pages
# Of make test, which has built: a target that needs another is begun behind all that need none, and this one takes longest.
.PHONY: pages
pages:
	cd bench/browser && $(GO) vet . && SHOTS='$(SHOTS)' UPDATE='$(APPROVE)' $(GO) test -vet=off -count=1 -timeout 10m .

# Fills an embedded store through the real pipeline and the engine, and measures
# every query of the dashboards on it; bench/queries.md has an earlier run. 50e6
# rows need some 12 GB of disk, and half an hour.
ROWS ?= 1e6
RUNS ?= 5
bench-queries: build
	$(GO) run ./dashboards/internal/measure -rows $(ROWS) -runs $(RUNS)

# The collector and Earshot side by side, how Earshot grows, its stages, and what of
# all that was to be reached: a quarter of an hour on two cores that do nothing else.
bench: build
	$(GO) run ./bench/cmd/bench -report bench/report.md
	$(GO) run ./bench/cmd/bench -scale -report bench/scale.md
	$(GO) run ./bench/cmd/bench -stages -report bench/stages.md
	$(GO) run ./bench/cmd/bench -goals -report bench/goals.md

# A backlog of 10 GB that is there before Earshot starts, a tenth and a hundredth of it:
# ten minutes more, and 15 GB of disk while it lasts.
BYTES ?= 10e9
bench-backlog: build
	$(GO) run ./bench/cmd/bench -backlog $(BYTES) -report bench/backlog.md
	$(GO) run ./bench/cmd/bench -goals -report bench/goals.md

# Log records per CPU-second over gRPC into the journal, beside a collector's OTLP receiver, alternately.
OTLPRUNS ?= 5
bench-otlp: $(BIN)
	cd bench/collector && $(GO) build -o ../../$(BIN)/collector .
	BENCH_OTLP=$(abspath $(BIN)/collector) $(GO) test -run '^TestReceiverBesideCollector$$' -count=1 -v -timeout 20m ./core/app -otlp.runs $(OTLPRUNS)

# Kills everything that can be killed while agents write, and counts; then kills the
# sidecar at every system call that matters: under ten minutes together.
# make chaos SEED=7 DURATION=1h for another run, or a longer one; EVERY=0 for no sweep.
SEED     ?= 1
DURATION ?= 60s
EVERY    ?= 1
chaos: build
	$(GO) run ./bench/cmd/chaos -bin $(BIN) -seed $(SEED) -duration $(DURATION) -every $(EVERY)

# Every attack of docs/security.md as a test, a line each: the attack, and what happened.
security: build
	@$(GO) run ./bench/cmd/security

# How many changes of a place in the code the tests notice: a sample of each package, and those that survived.
SAMPLE   ?= 25
MUTATED  ?= ./core/internal/assemble ./core/internal/checkpoint ./core/internal/delivery ./core/internal/host ./core/internal/journal ./core/internal/pipeline ./core/internal/redact ./core/internal/spool ./exporters/notify ./exporters/otel
mutate:
	@$(GO) run -C core/internal/tools ./mutate -C '$(CURDIR)' -n $(SAMPLE) $(MUTATED)

# A release of the tree as it is: archives, deb, rpm, apk, a Homebrew formula, the images' build context,
# completions, man pages, SBOM and checksums, in dist. The same commit gives the same bytes.
DIST    ?= dist
ONLY    ?=
RELEASE  = $(GO) run -C core/internal/tools ./release -C '$(CURDIR)' -version '$(VERSION)'
release:
	@$(RELEASE) -out '$(DIST)' -only '$(ONLY)'

# Makes the release of this platform twice and compares the bytes; installs its deb in an empty root, starts what
# it installed, reads a conversation, and removes it again. make test does the second with the programs in bin.
release-test:
	$(GO) test -C core/internal/tools -count=1 -timeout 15m ./release

# Has the build of another commit read a part of the traffic and be killed, and this one go on in its data
# directory: nothing is lost, and nothing is there twice.
FROM ?= main
upgrade-test:
	@dir="$$(mktemp -d)" && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/tree" "$$dir/bin" && git archive '$(FROM)' | tar -x -C "$$dir/tree" && \
	( cd "$$dir/tree" && $(GO) build -trimpath -o "$$dir/bin/" ./cmd/earshot ./cmd/earshot-store ) && \
	EARSHOT_PREVIOUS="$$dir/bin" $(GO) test -count=1 -tags upgrade -run '^TestPreviousBuild$$' -timeout 15m ./bench/e2e

# The licences of what the binaries contain, in NOTICE, and a CycloneDX list of the same.
sbom: $(BIN)
	$(GO) run ./bench/cmd/sbom NOTICE $(BIN)/sbom.cdx.json

# Rewrites what is generated: the wire's Go code, the list of decoders, the example configuration.
generate: engine
	$(GO) generate ./...

clean:
	rm -rf $(BIN) earshot-demo

include engine.mk
