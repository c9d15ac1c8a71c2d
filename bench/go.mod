module github.com/redlock-go/redlock/bench

go 1.25.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redlock-go/redlock v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
)

replace github.com/redlock-go/redlock => ../
