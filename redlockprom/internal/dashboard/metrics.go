package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlock-go/redlock/redlockprom"
)

// A metricInfo describes a metric of the collector.
type metricInfo struct {
	help   string
	labels []string
}

// descText matches the String of a prometheus.Desc, which does not export its fields.
var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "([^"]*)",.* variableLabels: \{([^}]*)\}`)

// exported returns the metrics of a collector by name.
func exported() (map[string]metricInfo, error) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		redlockprom.New().Describe(descs)
	}()
	metrics := map[string]metricInfo{}
	var err error
	for d := range descs { // receive all, so that Describe returns
		m := descText.FindStringSubmatch(d.String())
		if m == nil {
			err = fmt.Errorf("the description has an unknown format: %s", d)
			continue
		}
		info := metricInfo{help: m[2]}
		if m[3] != "" {
			info.labels = strings.Split(m[3], ",")
		}
		metrics[m[1]] = info
	}
	return metrics, err
}
