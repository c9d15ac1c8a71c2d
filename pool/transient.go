package pool

import (
	"errors"

	"github.com/gomodule/redigo/redis"
)

// Transient reports whether err is an error that a master answered and that may pass: it is full, loading, read-only, or
// busy with a script. An error that is no reply of a master is not.
func Transient(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && isTransient(reply)
}

// Answered reports whether err is an error that a master answered, as opposed to having given no answer.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
