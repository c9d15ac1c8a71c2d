module github.com/redlock-go/redlock/cmd/redlock

go 1.25.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redlock-go/redlock v0.1.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.1.0
	golang.org/x/sys v0.47.0 // v0.48.0 needs Go 1.26
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
)
