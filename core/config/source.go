package config

import (
	"encoding/json"
	"net"
	"net/url"
)

// Types of source.
const (
	TypeFile      = "file"
	TypeTap       = "tap"
	TypeSSE       = "sse"
	TypeWebSocket = "websocket"
	TypeHTTP      = "http"
	TypePoll      = "poll"
)

// Source is one thing to listen to: what all types have in common, and the keys
// of its own type. In the file both stand side by side.
type Source struct {
	// Unique name: letters a-z, digits, _ and -. It is part of the identity of what
	// is stored: a renamed source is a new one.
	Name string `yaml:"name"`
	// file, tap, sse, websocket, http or poll.
	Type string `yaml:"type"`
	// Format of the traffic, which is the name of the decoder.
	Format string `yaml:"format"`
	// Tenant of everything that this source gives.
	Tenant string `yaml:"tenant"`
	// Settings of the decoder; `earshot plugin list` shows which it has.
	Options json.RawMessage `yaml:"options"`

	// Exactly one is set, the one that Type names; none when Type is unknown.
	File      *FileSource      `type:"file"`
	Tap       *TapSource       `type:"tap"`
	SSE       *SSESource       `type:"sse"`
	WebSocket *WebSocketSource `type:"websocket"`
	HTTP      *HTTPSource      `type:"http"`
	Poll      *PollSource      `type:"poll"`
}

// Server is host:port of the server that the source listens to: a tap's upstream, or
// what a client asks. It is empty for files and for what agents push.
func (s *Source) Server() string {
	var address string
	switch {
	case s.Tap != nil:
		address = s.Tap.Upstream
	case s.SSE != nil:
		address = s.SSE.URL
	case s.WebSocket != nil:
		address = s.WebSocket.URL
	case s.Poll != nil:
		address = s.Poll.URL
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" || u.Scheme == "wss" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Where a file is first read from.
const (
	StartAtBeginning = "beginning"
	StartAtEnd       = "end"
)

// FileSource follows jsonl files.
type FileSource struct {
	// Globs of the files to follow; ** stands for any number of directories.
	Paths []string `yaml:"paths"`
	// Globs of files to leave alone although paths match them.
	Exclude []string `yaml:"exclude"`
	// Where to start in a file never seen before: beginning or end.
	StartAt string `yaml:"start_at"`
	// Longer lines are quarantined, cut to this.
	MaxLine Size `yaml:"max_line"`
	// How often to look for changes that the kernel did not report.
	PollInterval Duration `yaml:"poll_interval"`
	// Do not begin files whose last change is older than this. 0s: begin all.
	IgnoreOlderThan Duration `yaml:"ignore_older_than"`
}

// TapSource is a reverse proxy in front of an agent server.
type TapSource struct {
	// Address that the clients connect to, instead of the agent server's.
	Listen string `yaml:"listen"`
	// The agent server, http:// or https://.
	Upstream string `yaml:"upstream"`
	// TLS in front, towards the clients.
	TLS *ServerTLS `yaml:"tls"`
	// TLS behind, towards an https:// upstream.
	UpstreamTLS *ClientTLS `yaml:"upstream_tls"`
	// Which responses to record, and in which format. The first match wins, and what
	// matches none is passed through unrecorded. Without routes everything has the
	// source's format.
	Routes []Route `yaml:"routes"`
	// Bodies are recorded up to this size. What is passed through has no limit.
	MaxBody Size `yaml:"max_body"`
}

// Route picks traffic of a tap. An empty criterion matches everything.
type Route struct {
	// Glob of the request's path; * stays within a segment, ** does not.
	Path string `yaml:"path"`
	// Host of the request, without the port.
	Host string `yaml:"host"`
	// Media type of the response, without parameters.
	ContentType string `yaml:"content_type"`
	// Format of what matches.
	Format string `yaml:"format"`
}

// How an SSE stream is resumed after a broken connection.
const (
	ResumeNone        = ""
	ResumeLastEventID = "last_event_id"
	ResumeAGNO        = "agno"
	ResumeLetta       = "letta"
)

// SSESource is a client of a server-sent event stream.
type SSESource struct {
	// URL of the stream, http:// or https://.
	URL string `yaml:"url"`
	// Method of the request.
	Method string `yaml:"method"`
	// Headers of the request. The values are never printed.
	Headers map[string]Secret `yaml:"headers"`
	// Body of the request.
	Body string `yaml:"body"`
	// How to go on after a broken connection: last_event_id (the SSE standard), agno
	// (last_event_index), letta (starting_after), or empty to begin anew.
	Resume string `yaml:"resume"`
}

// WebSocketSource is a WebSocket client.
type WebSocketSource struct {
	// URL of the socket, ws:// or wss://.
	URL string `yaml:"url"`
	// Headers of the handshake. The values are never printed.
	Headers map[string]Secret `yaml:"headers"`
	// Subprotocols to offer, the preferred one first.
	Subprotocols []string `yaml:"subprotocols"`
	// Text frames to send after connecting, such as a subscription.
	Send []string `yaml:"send"`
	// Text frame to send after those once something was heard: where to go on.
	// {{field}} stands for the JSON value that this field of a message had last. All
	// connections are then one stream.
	Resume string `yaml:"resume"`
}

// HTTPSource takes what agents push.
type HTTPSource struct {
	// Address to listen on.
	Listen string `yaml:"listen"`
	// Path that takes POST requests.
	Path string `yaml:"path"`
	// Bearer token that every request must carry. Empty: none. Never printed.
	Token Secret `yaml:"token"`
	// Larger bodies are refused.
	MaxBody Size `yaml:"max_body"`
	// TLS of the listener.
	TLS *ServerTLS `yaml:"tls"`
}

// How a reload API divides its answer into pages.
const (
	PagesNone  = ""
	PagesAGNO  = "agno"
	PagesLetta = "letta"
)

// PollSource asks a reload API again and again.
type PollSource struct {
	// URL to ask, http:// or https://.
	URL string `yaml:"url"`
	// Method of the request.
	Method string `yaml:"method"`
	// Headers of the request. The values are never printed.
	Headers map[string]Secret `yaml:"headers"`
	// Body of the request.
	Body string `yaml:"body"`
	// Pause between two requests.
	Interval Duration `yaml:"interval"`
	// How to turn pages: agno (page=), letta (after=), or empty when one answer has
	// everything.
	Pages string `yaml:"pages"`
}

// ServerTLS is TLS of a listener.
type ServerTLS struct {
	// PEM file of the certificate and its chain.
	CertFile string `yaml:"cert_file"`
	// PEM file of the private key.
	KeyFile string `yaml:"key_file"`
	// PEM file of the authorities whose clients are let in. Empty: no client
	// certificate is asked for.
	ClientCAFile string `yaml:"client_ca_file"`
}

// ClientTLS is TLS towards a server.
type ClientTLS struct {
	// PEM file of the authorities to trust. Empty: those of the system.
	CAFile string `yaml:"ca_file"`
	// PEM file of the client certificate.
	CertFile string `yaml:"cert_file"`
	// PEM file of its private key.
	KeyFile string `yaml:"key_file"`
	// Accept any certificate. For tests only.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
	// Name that the server's certificate must have. Empty: the host of the URL.
	ServerName string `yaml:"server_name"`
}
