// Package pool connects to the N independent Redis or Valkey masters of a deployment. Most programs only need its
// options: redlock.Open makes a Locker with a Pool of its own, and redlock.WithPool passes the options. Several Lockers
// can share a Pool:
//
//	masters, err := pool.Open([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"})
//	if err != nil {
//		return err
//	}
//	defer masters.Close()
//	locker, err := redlock.New(masters)
//
// [URL] describes the schemes: plain masters, TLS, sockets, masters behind Sentinel, and Redis Cluster. [FromRedisPool]
// uses the dial function of an existing redigo pool. The options set credentials, TLS, timeouts and the dialer, for all
// masters or for one.
//
// # Connections
//
// A Pool connects in the background. A master has one connection for calls, regardless of the number of callers, and a
// second connection while a Locker needs notifications, for example when a caller waits for a lock. A master is
// considered down when its connection ends, or when it has sent nothing for the timeout ([WithTimeout]) while a request
// awaits its reply. Attempts to connect continue while a master is down, so a repaired master is used again without
// further action. Errors contain no password. Credentials that expire are obtained for each connection
// ([WithCredentialsProvider]).
//
// A server is refused, with an error that names the problem and the fix ([ErrRefused]), if:
//   - its role is not master;
//   - it is a cluster node, but its URL is not that of a cluster, or the reverse;
//   - it is loading its data;
//   - it has a memory limit and a policy that evicts keys (unless [AllowEviction]);
//   - the user may not run INFO, or the reply lacks the identity or the clock of the server;
//   - another master of the Pool is the same server; or
//   - it is behind Sentinel or in a cluster, and may keep accepting writes while a replica is promoted (unless
//     [AllowTwoHolders]; docs/guide.md).
//
// # Rights
//
// "redlock check" and Check of a Locker report which rights a user lacks, and the rule of ACL SETUSER that grants
// them. For keys that begin with prefix, the whole rule is
//
//	~prefix:* resetchannels &prefix:* -@all +info +evalsha +eval +script|load +getrange +set +exists +hget +hmget
//	+hgetall +hset +hdel +hlen +zadd +zrem +zcard +zrange +zrangebyscore +zrank +zscore +pttl +pexpire +time
//	+publish +subscribe +unsubscribe +ping
//
// INFO is in the category @dangerous, which is often revoked as a whole. Scripts run with the rights of the user, so
// the rule contains the commands that the scripts use. A master behind Sentinel also needs +config|get, and a database
// other than 0 needs +select. Without +script|load, scripts are sent in full if the server has not cached them, and the
// script of acquires is sent in full once per connection. Without +publish, or without the right to the channel, locks
// are released but no waiter is notified. A waiter without +subscribe, +unsubscribe and +ping receives no notification.
// In both cases waiters rely on TTLs and polling. With +config|get the pool reads repl-backlog-ttl and the settings of
// fsync, and Check reads the persistence settings. With +client|setname, CLIENT LIST shows the label and the epoch of
// the client. With +client|setinfo, since Redis 7.2, it also shows the name of this library. Without these two rights,
// ACL LOG shows the refused commands.
package pool
