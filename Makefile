# make help lists the targets.
.PHONY: help spec spec-all simulator

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

spec: ## check the specification with SPIN: the configurations that end within a minute (three minutes on two cores)
	@verify/spec/run quick

spec-all: ## check every configuration of the specification (more than an hour, up to 6 GB)
	@verify/spec/run all

simulator: ## a hundred thousand random schedules of faults (hours); SEEDS=n for another number
	go test -count=1 -timeout 0 -run '^TestSchedules$$' ./redlock/internal/sim -args -seeds $(or $(SEEDS),100000)
