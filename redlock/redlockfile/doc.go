// Package redlockfile makes a Locker from the file that the command redlock reads with --config. So one file describes
// the deployment for programs and for the command:
//
//	{"masters": ["redis://a", "redis://b", "redis://c"], "prefix": "redlock", "user": "lock", "passwordFile": "pass",
//	 "ca": "ca.pem", "cert": "client.pem", "key": "client.key", "maxTTL": "30s", "durable": ["all"]}
//
// "redlock help" describes all fields. Paths are relative to the directory of the file. The files of passwords and of
// certificates are read for each connection, so they may be replaced while the program runs.
package redlockfile
