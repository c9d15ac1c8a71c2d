module github.com/redlock-go/redlock/bench

go 1.25.0

require (
	github.com/go-redsync/redsync/v4 v4.17.0 // v4.18.0 needs Go 1.26
	github.com/gomodule/redigo v1.9.3
	github.com/google/uuid v1.6.0
	github.com/redis/rueidis v1.0.79
	github.com/redis/rueidis/rueidiscompat v1.0.79
	github.com/redlock-go/redlock v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/perf v0.0.0-20260312031701-16a31bc5fbd0 // later ones need Go 1.26
	golang.org/x/sys v0.47.0 // v0.48.0 needs Go 1.26
)

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
)
