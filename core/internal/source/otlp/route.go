package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Route names the format of resources and scopes. An empty pattern matches everything.
type Route struct {
	// Glob of service.name of the resource.
	Service string `yaml:"service"`
	// Glob of the name of the scope.
	Scope string `yaml:"scope"`
	// Format of what matches.
	Format string `yaml:"format"`
}

func (r *Route) matches(service, scope string) bool {
	return glob(r.Service, service) && glob(r.Scope, scope)
}

func glob(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// router finds the stream of a scope.
type router struct {
	routes []Route // the first match wins
	format string  // of a resource that matches none
}

func (r *router) formatOf(service, scope string) string {
	for i := range r.routes {
		if r.routes[i].matches(service, scope) {
			return r.routes[i].Format
		}
	}
	return r.format
}

// identity are the attributes by which resources are distinguished: which process, and which
// conversation where a resource is of one. Others may be absent in one signal and not in another.
var identity = [...]string{
	"service.namespace", "service.name", "service.instance.id", "host.id", "host.name", "k8s.pod.uid", "container.id", "process.pid",
	"session.id", "gen_ai.conversation.id", "conversation.id",
}

// resource has the facts of a resource that the routing needs.
type resource struct {
	service string
	hash    [sha256.Size]byte // of its identity
}

// resourceOf reads the JSON of a resource.
func resourceOf(v jsonv.Value) resource {
	var values [len(identity)]string
	for a := range v.Get("attributes").Elems() {
		key := a.Get("key").Chars()
		for i, name := range identity {
			if string(key) != name {
				continue
			}
			for _, x := range a.Get("value").Members() {
				if x.Is(jsonv.String) {
					values[i] = string(x.Chars())
				}
			}
		}
	}
	h := sha256.New()
	for i, value := range values {
		if value != "" {
			_, _ = h.Write([]byte(identity[i] + "\x00" + value + "\x00"))
		}
	}
	r := resource{service: values[1]}
	h.Sum(r.hash[:0])
	return r
}

// key names the stream of a resource's records of a format. It depends on the resource alone, so it is the same
// after a restart.
func (r *resource) key(format string) string {
	return format + "-" + hex.EncodeToString(r.hash[:16])
}

// origin is where the records are from, for people.
func (r *resource) origin() string {
	name := r.service
	const longest = 200
	if len(name) > longest {
		name = name[:longest]
	}
	if name == "" {
		name = "unknown"
	}
	return "otlp://" + url.PathEscape(name) + "/" + hex.EncodeToString(r.hash[:4])
}
