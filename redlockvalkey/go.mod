module github.com/redlock-go/redlock/redlockvalkey

go 1.25.0

require (
	github.com/redlock-go/redlock v0.1.0
	github.com/valkey-io/valkey-go v1.0.79
)

require (
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
