package scripts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Configuration is what two clients must agree on before both may acquire locks: the shard and the number of shards,
// the epoch, and the lists of masters, as [List] makes them.
type Configuration struct {
	Shard         Shard
	Masters, Next string
	Epoch         int64
}

// String returns the text of the configuration. Two configurations are the same if their texts are equal.
func (conf Configuration) String() string {
	return fmt.Sprintf("shard=%v masters=%s next=%s epoch=%d", conf.Shard, conf.Masters, cmp.Or(conf.Next, "-"),
		conf.Epoch)
}

// Hash returns eight hexadecimal digits that stand for the text of the configuration.
func (conf Configuration) Hash() string {
	sum := sha256.Sum256([]byte(conf.String()))
	return hex.EncodeToString(sum[:4])
}

// Configuration returns the configuration in the record.
func (r *Record) Configuration() Configuration {
	return Configuration{Shard: r.Shard, Masters: r.Masters, Next: r.Next, Epoch: r.Epoch}
}
