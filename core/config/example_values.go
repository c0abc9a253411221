package config

// exampleConfigs returns the two layers of the example: what stands in it live,
// and the same with everything else that can be set.
func exampleConfigs() (off, on *Config) {
	off, on = Default(), Default()
	off.Sources, on.Sources = exampleSources(), exampleSources()

	on.Plugins = map[string]Plugin{"acme": DefaultPlugin()}

	on.Sources[0].File.Exclude = []string{"sessions/*/tmp-*"}

	tap := on.Sources[1].Tap
	tap.TLS = &ServerTLS{CertFile: "tls/tap.crt", KeyFile: "tls/tap.key", ClientCAFile: "tls/clients.crt"}
	tap.UpstreamTLS = &ClientTLS{CAFile: "tls/agents.crt", CertFile: "tls/earshot.crt", KeyFile: "tls/earshot.key", ServerName: "agents.internal"}
	tap.Routes = []Route{{Path: "/v1/messages", Host: "agents.internal", ContentType: "text/event-stream", Format: "anthropic-sse"}}

	token := map[string]Secret{"Authorization": NewSecret("Bearer ${AGENT_TOKEN:-}")}
	on.Sources[2].SSE.Headers = token
	on.Sources[3].WebSocket.Headers = token
	on.Sources[3].WebSocket.Subprotocols = []string{"agent.v1"}
	on.Sources[3].WebSocket.Send = []string{`{"type":"subscribe"}`}
	on.Sources[3].WebSocket.Resume = `{"action":"reconnect","run_id":{{run_id}},"last_event_index":{{event_index}}}`
	on.Sources[4].HTTP.Token = NewSecret("${PUSH_TOKEN:-change-me}")
	on.Sources[4].HTTP.TLS = &ServerTLS{CertFile: "tls/push.crt", KeyFile: "tls/push.key"}
	on.Sources[5].Poll.Headers = token

	var ch ClickHouse
	initialize(&ch)
	ch.DSN = NewSecret("clickhouse://earshot:${CLICKHOUSE_PASSWORD:-}@clickhouse:9000/earshot")
	ch.Database = defaultDatabase
	on.Exporters.ClickHouse = &ch

	var otlp OTLP
	initialize(&otlp)
	otlp.Endpoint = "https://collector.internal:4318"
	otlp.Protocol = ProtocolHTTP
	otlp.Headers = token
	otlp.Resource = map[string]string{"deployment.environment.name": "production"}
	otlp.TLS = &ClientTLS{CAFile: "tls/collector.crt"}
	on.Exporters.OTLP = &otlp

	on.Redact.Keys = []string{"api_key", "password"}
	on.Redact.Patterns = []Pattern{{Name: "employee", Regex: `\bE-[0-9]{6}\b`}}
	on.Redact.HashSalt = NewSecret("${REDACT_SALT:-}")
	return off, on
}

// exampleSources is one source of each type.
func exampleSources() []Source {
	sources := []Source{
		{Name: "legion", Type: TypeFile, Format: "legion", File: &FileSource{}},
		{Name: "agno", Type: TypeTap, Format: "agno", Tap: &TapSource{}},
		{Name: "letta", Type: TypeSSE, Format: "letta", SSE: &SSESource{}},
		{Name: "manus", Type: TypeWebSocket, Format: "llm-message", WebSocket: &WebSocketSource{}},
		{Name: "push", Type: TypeHTTP, Format: "grace", HTTP: &HTTPSource{}},
		{Name: "backfill", Type: TypePoll, Format: "agno", Poll: &PollSource{}},
	}
	for i := range sources {
		s := &sources[i]
		s.Tenant = "default"
		switch s.Type {
		case TypeFile:
			initialize(s.File)
			s.File.Paths = []string{"sessions/*/messages.jsonl"}
		case TypeTap:
			initialize(s.Tap)
			s.Tap.Listen, s.Tap.Upstream = "127.0.0.1:7801", "http://127.0.0.1:7777"
		case TypeSSE:
			initialize(s.SSE)
			s.SSE.URL = "http://127.0.0.1:8283/v1/runs/r1/stream"
		case TypeWebSocket:
			s.WebSocket.URL = "ws://127.0.0.1:8889"
		case TypeHTTP:
			initialize(s.HTTP)
			s.HTTP.Listen = "127.0.0.1:7802"
		case TypePoll:
			initialize(s.Poll)
			s.Poll.URL = "http://127.0.0.1:7777/sessions/s1/runs"
		}
	}
	return sources
}
