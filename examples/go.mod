module github.com/redlock-go/redlock/examples

go 1.25.0

replace (
	github.com/redlock-go/redlock => ../
	github.com/redlock-go/redlock/redlockgocron => ../redlockgocron
	github.com/redlock-go/redlock/redlockgoredis => ../redlockgoredis
	github.com/redlock-go/redlock/redlockotel => ../redlockotel
	github.com/redlock-go/redlock/redlockprom => ../redlockprom
	github.com/redlock-go/redlock/redlockrueidis => ../redlockrueidis
	github.com/redlock-go/redlock/redlockvalkey => ../redlockvalkey
)

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/go-redsync/redsync/v4 v4.17.0 // v4.18.0 needs Go 1.26
	github.com/gomodule/redigo v1.9.3
	github.com/jonboulle/clockwork v0.5.0
	github.com/prometheus/client_golang v1.24.1 // v1.25.0 needs Go 1.26
	github.com/redis/go-redis/v9 v9.22.0 // v9.23.0 needs Go 1.26
	github.com/redis/rueidis v1.0.79
	github.com/redlock-go/redlock v0.1.0
	github.com/redlock-go/redlock/redlockgoredis v0.0.0-00010101000000-000000000000
	github.com/redlock-go/redlock/redlockotel v0.0.0-00010101000000-000000000000
	github.com/redlock-go/redlock/redlockprom v0.0.0-00010101000000-000000000000
	github.com/redlock-go/redlock/redlockrueidis v0.0.0-00010101000000-000000000000
	github.com/redlock-go/redlock/redlockvalkey v0.0.0-00010101000000-000000000000
	github.com/valkey-io/valkey-go v1.0.79
	go.opentelemetry.io/otel/exporters/stdout/stdouttrace v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/sdk v1.46.0 // v1.47.0 needs Go 1.26
	go.opentelemetry.io/otel/trace v1.46.0 // v1.47.0 needs Go 1.26
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.6
	modernc.org/sqlite v1.59.0 // v1.60.1 needs Go 1.26
)

require (
	github.com/google/uuid v1.6.0
	github.com/hibiken/asynq v0.26.0
	github.com/redlock-go/redlock/redlockgocron v0.0.0-00010101000000-000000000000
	github.com/riverqueue/river v0.44.1 // v0.45.0 needs Go 1.26
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/riverqueue/river/riverdriver v0.44.1 // indirect
	github.com/riverqueue/river/rivershared v0.44.1 // indirect
	github.com/riverqueue/river/rivertype v0.44.1 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.46.0 // indirect
	go.opentelemetry.io/otel/metric v1.46.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	modernc.org/libc v1.75.7 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
