// Command dashboard writes the Grafana dashboard for the metrics of package redlockprom to standard output:
//
//	go run ./redlockprom/internal/dashboard >deploy/grafana/redlock.json
//
// The names, labels and descriptions of the metrics are those of [redlockprom.Collector]. The panels and their queries
// are in panels.go. A test fails if the file is out of date, if a query uses a metric or a label that the collector
// does not export, or if a metric is on no panel.
package main
