module github.com/redlock-go/redlock/redlockotel

go 1.25.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redlock-go/redlock v0.1.0
	go.opentelemetry.io/otel v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/metric v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/sdk v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/sdk/metric v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/trace v1.46.0 // v1.47.0 needs Go 1.26
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
