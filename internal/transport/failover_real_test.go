package transport

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// H134: stopsScripts returns, from the version alone, whether the server rejects writes of scripts when it lacks
// replicas.
func TestScriptsStopWithoutReplicasByVersion(t *testing.T) {
	c, err := redis.DialURL(redistest.Test(t, 1, redisproc.Config{})[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := redis.String(c.Do("INFO"))
	if err != nil {
		t.Fatal(err)
	}
	info := infoOf(InfoFields(text))
	for _, setting := range []string{"min-replicas-max-lag", "min-replicas-to-write"} {
		must.Get(c.Do("CONFIG", "SET", setting, "1"))(t)
	}
	const said = "NOREPLICAS"
	if _, err := c.Do("SET", "a", "1"); err == nil || !strings.Contains(err.Error(), said) {
		t.Fatalf("a write without replicas returned %v", err)
	}
	_, err = c.Do("EVAL", "return redis.call('SET', KEYS[1], '1')", 1, "a")
	if stops := err != nil && strings.Contains(err.Error(), said); stops != info.stopsScripts() {
		t.Errorf("version %s: scripts stop: %v (%v), expected from the version: %v", info.Version, stops, err,
			info.stopsScripts())
	}
}
