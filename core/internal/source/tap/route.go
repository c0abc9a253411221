package tap

import (
	"net"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// wanted reports whether some response to the request would be recorded.
func (t *Tap) wanted(path, host string) bool {
	if len(t.Routes) == 0 {
		return true
	}
	for i := range t.Routes {
		if t.Routes[i].request(path, host) {
			return true
		}
	}
	return false
}

// asked returns the format of a request before its response has begun; empty when that decides.
func (t *Tap) asked(path, host string) (format string) {
	if len(t.Routes) == 0 {
		return t.Format
	}
	for i := range t.Routes {
		switch of := t.Routes[i].Format; {
		case !t.Routes[i].request(path, host) || of == format:
		case format != "":
			return ""
		default:
			format = of
		}
	}
	return format
}

// resumes reports whether a request goes on with a run that is known.
func (t *Tap) resumes(format, path string) bool {
	r := t.resume[format]
	return r != nil && r.RunOf(path) != ""
}

// pick returns the format and shape of a response; format is empty when it is not
// to be recorded.
func (t *Tap) pick(path, host, contentType string) (format string, shape body.Shape) {
	shape = body.ShapeOf(contentType)
	if len(t.Routes) == 0 {
		if shape == body.Opaque {
			return "", shape
		}
		return t.Format, shape
	}
	media := body.Media(contentType)
	for i := range t.Routes {
		route := &t.Routes[i]
		if !route.request(path, host) {
			continue
		}
		switch {
		case strings.EqualFold(route.ContentType, media) && media != "":
			return route.Format, shape
		case route.ContentType == "" && shape != body.Opaque:
			return route.Format, shape
		}
	}
	return "", shape
}

// pickSocket returns the format of a WebSocket, which has no content type.
func (t *Tap) pickSocket(path, host string) string {
	if len(t.Routes) == 0 {
		return t.Format
	}
	for i := range t.Routes {
		if t.Routes[i].ContentType == "" && t.Routes[i].request(path, host) {
			return t.Routes[i].Format
		}
	}
	return ""
}

// request reports whether the request meets the criteria.
func (r *Route) request(path, host string) bool {
	if r.Host != "" && !strings.EqualFold(r.Host, host) {
		return false
	}
	return r.Path == "" || doublestar.MatchUnvalidated(r.Path, path)
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}
