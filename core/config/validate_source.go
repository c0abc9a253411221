package config

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

var (
	sourceName = regexp.MustCompile(`^[a-z0-9_-]+$`)
	formatName = regexp.MustCompile(`^[a-z0-9-]+$`)
	resumeFrom = regexp.MustCompile(`\{\{[^{}]+\}\}`)
)

func (l *loader) validateSource(path string, s *Source) {
	if l.required(path+".name", s.Name, "") && !sourceName.MatchString(s.Name) {
		l.report(path+".name", "a name is made of a-z, 0-9, _ and -, got "+l.shown(path+".name", s.Name), "")
	}
	l.required(path+".tenant", s.Tenant, "")
	if types := sourceTypes(); s.Type == "" && l.at[path+".type"] == (place{}) {
		l.report(path+".type", "required", enumerate(types, "or"))
	} else {
		l.oneOf(path+".type", s.Type, types...)
	}
	if s.Tap == nil || len(s.Tap.Routes) == 0 || s.Format != "" {
		why := ""
		if s.Tap != nil {
			why = "a tap without routes"
		}
		l.format(path+".format", s.Format, why)
	}
	switch {
	case s.File != nil:
		l.fileSource(path, s.File)
	case s.Tap != nil:
		l.tapSource(path, s.Tap)
	case s.SSE != nil:
		l.request(path, s.Type, s.SSE.URL, s.SSE.Method, s.SSE.Body, s.SSE.Headers)
		l.oneOf(path+".resume", s.SSE.Resume, ResumeNone, ResumeLastEventID, ResumeAGNO, ResumeLetta)
	case s.WebSocket != nil:
		l.requiredURL(path+".url", s.WebSocket.URL, "type websocket", "ws", "wss")
		l.headers(path+".headers", s.WebSocket.Headers)
		for i, p := range s.WebSocket.Subprotocols {
			if at := path + ".subprotocols[" + strconv.Itoa(i) + "]"; !isToken(p) {
				l.report(at, "not a subprotocol: "+l.shown(at, p), "")
			}
		}
		if r := s.WebSocket.Resume; r != "" && !resumeFrom.MatchString(r) {
			l.report(path+".resume", "no {{field}} in it says where to go on", "")
		}
	case s.HTTP != nil:
		l.httpSource(path, s.HTTP)
	case s.Poll != nil:
		l.request(path, s.Type, s.Poll.URL, s.Poll.Method, s.Poll.Body, s.Poll.Headers)
		l.positive(path+".interval", s.Poll.Interval)
		l.oneOf(path+".pages", s.Poll.Pages, PagesNone, PagesAGNO, PagesLetta)
	}
}

func (l *loader) format(path, format, why string) {
	if l.required(path, format, why) && !formatName.MatchString(format) {
		l.report(path, "the name of a format is made of a-z, 0-9 and -, got "+l.shown(path, format), "")
	}
}

func (l *loader) fileSource(path string, f *FileSource) {
	if len(f.Paths) == 0 {
		l.required(path+".paths", "", "type file")
	}
	l.globs(path+".paths", f.Paths)
	l.globs(path+".exclude", f.Exclude)
	l.oneOf(path+".start_at", f.StartAt, StartAtBeginning, StartAtEnd)
	l.positiveSize(path+".max_line", f.MaxLine)
	l.positive(path+".poll_interval", f.PollInterval)
	l.notNegative(path+".ignore_older_than", f.IgnoreOlderThan)
}

func (l *loader) globs(path string, globs []string) {
	for i, g := range globs {
		at := path + "[" + strconv.Itoa(i) + "]"
		if l.required(at, g, "") && !doublestar.ValidatePathPattern(g) {
			l.report(at, "not a glob: "+l.shown(at, g), "")
		}
	}
}

func (l *loader) tapSource(path string, t *TapSource) {
	if l.required(path+".listen", t.Listen, "type tap") {
		l.address(path+".listen", t.Listen)
	}
	l.requiredURL(path+".upstream", t.Upstream, "type tap", "http", "https")
	l.checkServerTLS(path+".tls", t.TLS)
	l.checkClientTLS(path+".upstream_tls", t.UpstreamTLS, "upstream", t.Upstream)
	for i, r := range t.Routes {
		at := path + ".routes[" + strconv.Itoa(i) + "]"
		l.format(at+".format", r.Format, "")
		if r.Path != "" && !strings.HasPrefix(r.Path, "/") && !strings.HasPrefix(r.Path, "**") {
			l.report(at+".path", "a path begins with / or **", "")
		} else if !doublestar.ValidatePattern(r.Path) {
			l.report(at+".path", "not a glob: "+l.shown(at+".path", r.Path), "")
		}
		if strings.ContainsAny(r.Host, ":/") {
			l.report(at+".host", "a host without scheme and port, got "+l.shown(at+".host", r.Host), "")
		}
		if kind, sub, ok := strings.Cut(r.ContentType, "/"); r.ContentType != "" && (!ok || !isToken(kind) || !isToken(sub)) {
			l.report(at+".content_type", "a media type like text/event-stream, got "+l.shown(at+".content_type", r.ContentType), "")
		}
	}
	l.positiveSize(path+".max_body", t.MaxBody)
}

func (l *loader) httpSource(path string, h *HTTPSource) {
	if l.required(path+".listen", h.Listen, "type http") {
		l.address(path+".listen", h.Listen)
	}
	if !strings.HasPrefix(h.Path, "/") {
		l.report(path+".path", "a path begins with /", "")
	}
	if token := h.Token.Reveal(); strings.ContainsAny(token, " \t\r\n") {
		l.report(path+".token", "a token has no white space", "")
	}
	l.positiveSize(path+".max_body", h.MaxBody)
	l.checkServerTLS(path+".tls", h.TLS)
}

// request checks what sse and poll have in common.
func (l *loader) request(path, typ, rawURL, method, body string, headers map[string]Secret) {
	l.requiredURL(path+".url", rawURL, "type "+typ, "http", "https")
	l.oneOf(path+".method", method, "GET", "POST", "PUT")
	l.headers(path+".headers", headers)
	if body != "" && method == "GET" {
		l.report(path+".body", "a GET request has no body", "set method: POST")
	}
}

func (l *loader) checkServerTLS(path string, t *ServerTLS) {
	if t == nil {
		return
	}
	l.required(path+".cert_file", t.CertFile, "")
	l.required(path+".key_file", t.KeyFile, "")
}

// checkClientTLS checks TLS towards the URL in the key named by of.
func (l *loader) checkClientTLS(path string, t *ClientTLS, of, rawURL string) {
	if t == nil {
		return
	}
	if t.CertFile == "" && t.KeyFile != "" {
		l.required(path+".cert_file", "", "key_file")
	}
	if t.KeyFile == "" && t.CertFile != "" {
		l.required(path+".key_file", "", "cert_file")
	}
	if u, err := url.Parse(rawURL); err == nil && u.Scheme == "http" {
		l.report(path, "has no effect: "+of+" is http://", "make it https:// or remove this")
	}
}
