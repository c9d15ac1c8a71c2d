# make help lists the targets.
.PHONY: help test race long long-library verify simulator mutants spec spec-all fuzz integration bench bench-short lint tidy docs ci
golangci = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
actionlint = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
modules = . bench cmd/redlock examples integration redlockgocron redlockgoredis redlockotel redlockprom redlockrueidis redlockvalkey verify

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 14

test: ## run the tests of the library, of the examples and of verify
	go test ./... ./examples/... ./verify/...
	go test -count=1 ./verify/mutants # again: it reads files of another module, which the cache does not follow

race: ## run the tests of the library, the command and the examples with the race detector
	go test -race -timeout 20m $(patsubst %,./%/...,$(filter-out bench integration verify,$(modules)))

long-library: ## run the tests of the library that need real servers, or more time than a change waits for (five minutes)
	go test -count=1 -timeout 20m ./redlock ./internal/transport ./internal/scripts -long

long: ## run the long suites on real servers (an hour), and the other tests with the race detector
	go test -race -timeout 20m ./bench/... ./integration/... ./verify/...
	go test -timeout 60m ./redlock ./cmd/redlock ./internal/transport ./internal/scripts ./internal/storetest ./integration ./examples/observed -long

verify: simulator mutants spec fuzz ## simulator, mutants, specification and fuzzing

simulator: ## run SEEDS random schedules of faults (default 2000: two minutes)
	go test -count=1 -v -timeout 0 -run '^TestSchedules$$' ./verify/sim -args -seeds $(or $(SEEDS),2000)

mutants: ## remove each protection in turn: a test or a schedule must fail
	go test -count=1 -timeout 60m -parallel 4 -run '^TestMutantsAreKilled$$' ./verify/mutants ./verify/sim -long

spec: ## check the specification with SPIN: the configurations that end within a minute (three minutes on two cores)
	@verify/spec/run quick

spec-all: ## check every configuration of the specification (more than an hour, up to 6 GB)
	@verify/spec/run all

fuzz: ## run each fuzz target for 20 000 inputs
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  for name in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz'); do \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime 20000x "$$package" || exit 1; \
	  done; \
	done

integration: ## run the integration tests, and a short set over the other versions of Redis and Valkey that can be had
	go test ./integration
	integration/matrix.sh -other

bench: ## measure what a lock costs, beside other libraries
	go run ./bench

bench-short: ## a short benchmark that fails if a target is missed by more than twice its bound
	go run ./bench -short -check
	go test -count=1 -run '^TestInstructions$$' ./internal/scripts -long

lint: tidy ## gofmt, go vet for three systems, golangci-lint, actionlint, go mod tidy
	test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	go vet work
	for system in windows/386 darwin/arm64; do \
	  GOOS=$${system%/*} GOARCH=$${system#*/} go vet ./clock/... ./pool/... ./redlock/... ./internal/... ./cmd/redlock ./examples/... || exit 1; \
	done
	go run $(golangci) config verify
	go run $(actionlint) .github/workflows/*.yml
	go run $(golangci) run $(patsubst %,./%/...,$(modules))

# Released modules have no replace, which "go install" refuses. So they are checked with a copy of go.mod that has one.
tidy:
	set -e; work=$$(mktemp -d); for m in $(modules); do \
	  cp $$m/go.mod $$m/go.sum $$work; \
	  [ $$m = . ] || go mod edit -replace "github.com/redlock-go/redlock=$$PWD" $$work/go.mod; \
	  go -C $$m mod tidy -diff -modfile $$work/go.mod; \
	  go work edit -json | grep -qE "\"DiskPath\": \"(\./)?$$m\"" || { echo "go.work does not have $$m" >&2; exit 1; }; \
	done; rm -r $$work

docs: ## check that documents are current (commands, code blocks, man page, hazards), and that the API is compatible
	for check in .ci/checks/*; do echo $$check; $$check || exit 1; done

ci: lint docs bench-short simulator spec fuzz integration race test ## all that must hold before a change is taken
