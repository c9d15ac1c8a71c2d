// Package fault has the errors of connections: sentinels, causes of several kinds, texts without credentials.
package fault
