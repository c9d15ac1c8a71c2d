module github.com/redlock-go/redlock/examples/follow

go 1.25.0

replace github.com/redlock-go/redlock => ../..

require (
	github.com/fsnotify/fsnotify v1.9.0
	github.com/redlock-go/redlock v0.0.0-00010101000000-000000000000
)

require (
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/sys v0.13.0 // indirect
)
