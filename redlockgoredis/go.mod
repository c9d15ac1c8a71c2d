module github.com/redlock-go/redlock/redlockgoredis

go 1.25.0

require (
	github.com/redis/go-redis/v9 v9.22.0 // v9.23.0 needs Go 1.26
	github.com/redlock-go/redlock v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)
