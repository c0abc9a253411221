package assemble

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// unnamed reports whether the session of a run is no id of the protocol, but a name
// that had to stand in for one: the run's own id, or the file in which it was found;
// a decoder may say that it is another (msg.SessionFrom). Coding agents name the files of their transcripts after
// the session; elsewhere a file has the name that somebody gave it.
func unnamed(m *msg.Message) bool {
	if m.Session == m.Run || m.Session == m.Host.Format || m.Session == "unknown" {
		return true
	}
	switch m.Host.Format {
	case "claude-code", "codex", "legion", "letta":
		return false
	}
	if _, rest, ok := strings.Cut(m.Host.Origin, "://"); ok {
		return namedAfterURL(m.Session, rest)
	}
	file := m.Host.Origin[strings.LastIndexAny(m.Host.Origin, `/\\`)+1:]
	rest, ok := strings.CutPrefix(file, m.Session)
	return ok && (rest == "" || rest[0] == '.')
}

// namedAfterURL reports whether the session is the host or the end of a path that does
// not say that it names one, as /sessions/{id} does. rest is what follows the scheme.
func namedAfterURL(session, rest string) bool {
	rest, _, _ = strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if session == host || session == path {
		return true
	}
	before, ok := strings.CutSuffix(path, "/"+session)
	switch before[strings.LastIndexByte(before, '/')+1:] {
	case "sessions", "conversations", "threads":
		return false
	}
	return ok
}
