package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

const manifests = "../../deploy/kubernetes/"

type labels = map[string]string

type selector struct {
	MatchLabels labels `yaml:"matchLabels"`
}

// A manifest is one document, with the fields that the tests read.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Data       labels
	Spec       yaml.Node
}

type service struct {
	ClusterIP string `yaml:"clusterIP"`
	Selector  labels
	Ports     []struct {
		Name string
		Port int
	}
}

type workload struct {
	Replicas        int
	ServiceName     string                `yaml:"serviceName"`
	MinReadySeconds int                   `yaml:"minReadySeconds"`
	UpdateStrategy  struct{ Type string } `yaml:"updateStrategy"`
	Selector        selector
	Template        struct {
		Metadata struct{ Labels labels }
		Spec     struct {
			Affinity struct {
				PodAntiAffinity struct {
					Required []struct {
						LabelSelector selector `yaml:"labelSelector"`
						TopologyKey   string   `yaml:"topologyKey"`
					} `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
				} `yaml:"podAntiAffinity"`
			}
			Volumes []struct {
				Name      string
				ConfigMap struct{ Name string } `yaml:"configMap"`
			}
			Containers []struct {
				Args   []string
				Mounts []struct {
					Name      string
					MountPath string `yaml:"mountPath"`
					SubPath   string `yaml:"subPath"`
				} `yaml:"volumeMounts"`
				Ports []struct {
					Name          string
					ContainerPort int `yaml:"containerPort"`
				}
				Readiness struct {
					HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
					Exec    struct{ Command []string }
				} `yaml:"readinessProbe"`
				Liveness *yaml.Node `yaml:"livenessProbe"`
			}
		}
	}
	Claims []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
}

// versions contains the API version of each kind in the manifests.
var versions = map[string]string{
	"Namespace": "v1", "ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1", "Deployment": "apps/v1",
	"PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1",
}

// parse returns the documents of a file, indexed by kind and name.
func parse(t *testing.T, file string) map[string]manifest {
	t.Helper()
	text, err := os.ReadFile(manifests + file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		id := m.Kind + "/" + m.Metadata.Name
		if versions[m.Kind] != m.APIVersion || m.Metadata.Name == "" {
			t.Errorf("%s: %s has the API version %q, want %q", file, id, m.APIVersion, versions[m.Kind])
		}
		if m.Kind != "Namespace" && m.Metadata.Namespace != "redlock" {
			t.Errorf("%s: %s is in the namespace %q, want redlock", file, id, m.Metadata.Namespace)
		}
		if _, twice := all[id]; twice {
			t.Errorf("%s: %s is defined twice", file, id)
		}
		all[id] = m
	}
}

// spec decodes the specification of a document.
func spec[T any](t *testing.T, all map[string]manifest, id string) (s T) {
	t.Helper()
	m, ok := all[id]
	if !ok {
		t.Fatalf("there is no %s", id)
	}
	if err := m.Spec.Decode(&s); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return s
}

// selects reports whether the selector s is not empty and selects pods with the labels pods.
func selects(s, pods labels) bool {
	for k, v := range s {
		if pods[k] != v {
			return false
		}
	}
	return len(s) > 0
}

// masterURLs returns the URLs of the services that lead to one master each, indexed by the name of the master.
func masterURLs(t *testing.T, all map[string]manifest, masters workload) map[string]string {
	t.Helper()
	const podName = "statefulset.kubernetes.io/pod-name" // a label that Kubernetes adds
	urls := map[string]string{}
	for id, m := range all {
		if m.Kind != "Service" || m.Metadata.Name == masters.ServiceName {
			continue
		}
		s := spec[service](t, all, id)
		pod := s.Selector[podName]
		if urls[pod] != "" {
			t.Errorf("%s: another service leads to %q as well", id, pod)
		}
		template := maps.Clone(masters.Template.Metadata.Labels)
		template[podName] = pod
		if s.ClusterIP != "None" || !selects(s.Selector, template) || len(s.Ports) != 1 {
			t.Errorf("%s is not a headless service of one master: %+v", id, s)
			continue
		}
		urls[pod] = fmt.Sprintf("redis://%s.%s.svc:%d", m.Metadata.Name, m.Metadata.Namespace, s.Ports[0].Port)
	}
	return urls
}

// The five masters run on different nodes, each master has its own service, and at most one master restarts at a
// time.
func TestMastersAreIndependent(t *testing.T) {
	all := parse(t, "masters.yaml")
	masters := spec[workload](t, all, "StatefulSet/master")
	pods := masters.Template.Metadata.Labels
	urls := masterURLs(t, all, masters)
	for i := range masters.Replicas {
		if name := fmt.Sprintf("master-%d", i); urls[name] == "" {
			t.Errorf("no service leads to %s", name)
		}
	}
	if masters.Replicas != 5 || len(urls) != 5 {
		t.Errorf("there are %d masters and the services %v, want 5", masters.Replicas, urls)
	}
	if s := spec[service](t, all, "Service/"+masters.ServiceName); s.ClusterIP != "None" || !selects(s.Selector, pods) {
		t.Errorf("the governing service is not headless, or does not select the masters: %+v", s)
	}
	if !selects(masters.Selector.MatchLabels, pods) {
		t.Errorf("the selector %v does not select the pods %v", masters.Selector.MatchLabels, pods)
	}
	const maxTTL = 30.0 // s, the default of WithMaxTTL
	if guard := maxTTL; masters.UpdateStrategy.Type != "RollingUpdate" ||
		float64(masters.MinReadySeconds) < guard+30 {
		t.Errorf("the rollout (%+v) waits for %d s between masters, want a quarantine and 30 s more",
			masters.UpdateStrategy, masters.MinReadySeconds)
	}
	if len(masters.Claims) != 1 {
		t.Error("the masters have no separate volumes")
	}
	apart := masters.Template.Spec.Affinity.PodAntiAffinity.Required
	if len(apart) != 1 || !selects(apart[0].LabelSelector.MatchLabels, pods) ||
		apart[0].TopologyKey != "kubernetes.io/hostname" {
		t.Errorf("two masters may run on one node: %+v", apart)
	}
	if c := masters.Template.Spec.Containers[0]; c.Readiness.Exec.Command == nil || c.Liveness == nil {
		t.Errorf("a probe is missing: %+v", c)
	}
	budget := spec[struct {
		MaxUnavailable int `yaml:"maxUnavailable"`
		Selector       selector
	}](t, all, "PodDisruptionBudget/masters")
	if budget.MaxUnavailable != 1 || !selects(budget.Selector.MatchLabels, pods) {
		t.Errorf("the disruption budget does not limit evictions to one master at a time: %+v", budget)
	}
}

// The client is configured with the URLs of the five services, uses /ready as its readiness probe, and may connect to
// the masters.
func TestClientReachesTheMasters(t *testing.T) {
	all := parse(t, "masters.yaml")
	masters := spec[workload](t, all, "StatefulSet/master")
	clientDocs := parse(t, "client.yaml")
	client := spec[workload](t, clientDocs, "Deployment/client")
	pods, c := client.Template.Metadata.Labels, client.Template.Spec.Containers[0]
	volume, mount := client.Template.Spec.Volumes[0], c.Mounts[0]
	file := filepath.Join(t.TempDir(), "locks.json")
	text := clientDocs["ConfigMap/"+volume.ConfigMap.Name].Data["locks.json"]
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := configfile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Values(masterURLs(t, all, masters))); !slices.Equal(config.Masters, want) {
		t.Errorf("the client has the masters %q, want the services %q", config.Masters, want)
	}
	args := []string{fmt.Sprintf("-listen=:%d", c.Ports[0].ContainerPort), "-config=" + mount.MountPath + "/locks.json"}
	if !slices.Equal(c.Args, args) || mount.Name != volume.Name || mount.SubPath != "" {
		t.Errorf("the client starts with %q and the volume %+v, want %q", c.Args, mount, args)
	}
	if get := c.Readiness.HTTPGet; get.Path != "/ready" || get.Port != c.Ports[0].Name || c.Liveness != nil {
		t.Errorf("the client has the readiness probe %+v, want /ready, and the liveness probe %v, want none", get, c.Liveness)
	}
	if !selects(client.Selector.MatchLabels, pods) {
		t.Errorf("the selector %v does not select the pods %v", client.Selector.MatchLabels, pods)
	}
	policy := spec[struct {
		PodSelector selector `yaml:"podSelector"`
		Ingress     []struct {
			From []struct {
				PodSelector selector `yaml:"podSelector"`
			}
			Ports []struct{ Port string }
		}
	}](t, all, "NetworkPolicy/masters")
	from := policy.Ingress[0]
	if !selects(policy.PodSelector.MatchLabels, masters.Template.Metadata.Labels) ||
		!selects(from.From[0].PodSelector.MatchLabels, pods) ||
		from.Ports[0].Port != masters.Template.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the network policy does not let the client reach the masters: %+v", policy)
	}
}

// Check has no findings for the configuration of the masters, even if all masters are durable.
func TestConfigurationOfTheMasters(t *testing.T) {
	conf := parse(t, "masters.yaml")["ConfigMap/redis"].Data["redis.conf"]
	var args []string
	for line := range strings.Lines(conf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" || fields[0] == "port" || fields[0] == "dir" {
			continue
		}
		args = append(args, "--"+fields[0], strings.Trim(fields[1], `"`))
	}
	var urls []string
	for _, s := range redistest.Test(t, 5, redisproc.Config{Args: args}) {
		urls = append(urls, s.URL())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := redlocktest.Admit(ctx, urls...); err != nil {
		t.Fatal(err)
	}
	locker, err := redlock.Open(urls, redlock.WithAllMastersDurable())
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	if err := locker.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	verdict, err := admin.Of(locker).Check(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range verdict.Findings {
		t.Errorf("Check found a problem: %+v", f)
	}
}
