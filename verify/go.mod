module github.com/redlock-go/redlock/verify

go 1.25.0

replace github.com/redlock-go/redlock => ../

require (
	github.com/cockroachdb/datadriven v1.0.3
	github.com/gomodule/redigo v1.9.3
	github.com/google/uuid v1.6.0
	github.com/redlock-go/redlock v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
)

require (
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
)
