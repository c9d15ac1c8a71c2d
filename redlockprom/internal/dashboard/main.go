package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	text, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		log.Fatal(err)
	}
}

// place is the placeholder in queries. It is replaced with selector, which uses the variables of the dashboard.
const (
	place    = "SEL"
	selector = `job=~"$job", instance=~"$instance"`
)

// The grid of Grafana has 24 columns, so a row consists of four panels.
const panelWidth, panelHeight = 6, 8

// object is a JSON object; encoding/json sorts its keys.
type object = map[string]any

// source refers to the data source that the user selects on the dashboard.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// generate returns the dashboard as JSON.
func generate() ([]byte, error) {
	metrics, err := exported()
	if err != nil {
		return nil, err
	}
	var panels []object
	y := 0
	add := func(o object, x, w, h int) {
		o["id"], o["gridPos"] = len(panels)+1, object{"x": x, "y": y, "w": w, "h": h}
		panels = append(panels, o)
	}
	for _, r := range rows {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": []object{}}, 0, 24, 1)
		y++
		for i, p := range r.panels {
			o, err := p.object(metrics)
			if err != nil {
				return nil, err
			}
			add(o, i*panelWidth, panelWidth, panelHeight)
		}
		y += panelHeight
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(object{
		"uid": "redlock", "title": "redlock", "tags": []string{"redlock"}, "editable": true,
		"schemaVersion": 39, "version": 1, "refresh": "30s", "timezone": "browser",
		"time":       object{"from": "now-1h", "to": "now"},
		"templating": object{"list": variables()}, "panels": panels,
	})
	return text.Bytes(), err
}

// variables returns the variables of the dashboard: the data source, the jobs and the instances.
func variables() []object {
	values := func(name, query string) object {
		return object{
			"name": name, "label": name, "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query":      object{"query": query, "refId": name},
			"includeAll": true, "multi": true, "allValue": ".*",
			"current": object{"selected": true, "text": "All", "value": "$__all"},
		}
	}
	return []object{
		{"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"},
		values("job", "label_values(redlock_held, job)"),
		values("instance", `label_values(redlock_held{job=~"$job"}, instance)`),
	}
}

// object returns the panel in the format of Grafana.
func (p panel) object(metrics map[string]metricInfo) (object, error) {
	var description []string
	for _, name := range p.metrics {
		m, ok := metrics[name]
		if !ok {
			return nil, fmt.Errorf("panel %q: the collector has no metric %s", p.title, name)
		}
		description = append(description, name+": "+m.help)
	}
	if p.note != "" {
		description = append(description, p.note)
	}
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "legendFormat": q.legend,
			"expr": strings.ReplaceAll(q.expr, place, selector),
		})
	}
	o := object{
		"type": "timeseries", "title": p.title, "description": strings.Join(description, "\n\n"),
		"datasource": source, "targets": targets,
	}
	defaults := object{"unit": p.unit, "min": 0}
	custom := object{}
	if p.stack {
		custom = object{"stacking": object{"mode": "normal"}, "fillOpacity": 20}
	}
	if p.kind != "" {
		o["type"] = p.kind
		options := object{}
		for i, s := range p.states {
			options[fmt.Sprint(s.value)] = object{"text": s.text, "color": s.color, "index": i}
		}
		defaults = object{"mappings": []object{{"type": "value", "options": options}}}
		o["options"] = object{"showValue": "never", "mergeValues": true}
	}
	defaults["custom"] = custom
	o["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
	return o, nil
}
