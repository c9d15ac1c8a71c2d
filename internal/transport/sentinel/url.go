package sentinel

import (
	"errors"
	"net/url"
	"strings"
)

// Form is the form of the URL of a master behind Sentinel.
const Form = "redis+sentinel://[user:password@]host:port,host:port,.../service[?db=0][&allow=two-holders][&name=...]" +
	", where service is the master's name for the sentinels"

// Port is the default port of a sentinel.
const Port = "26379"

// NameIn returns the master's name for the sentinels from its URL.
func NameIn(u *url.URL) (string, error) {
	name := strings.Trim(u.Path, "/")
	if name == "" || strings.ContainsAny(name, "/@ ") {
		return "", errors.New("the path of the URL must be the name of the master that the sentinels monitor; " +
			"the form is " + Form)
	}
	return name, nil
}
