package otlp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// stream decodes one stream of frames.
type stream struct {
	*record.Current
	*state
	profile *Profile
	table   table

	seenSession string // in the frame
	scope       string // of the span that is read
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Traces []*trace            `json:",omitempty"` // the one that grew last is the last
	Turns  []*turn             `json:",omitempty"` // of log records, by session
	Logged []logged            `json:",omitempty"` // by log records
	Seen   bounded.Set[string] `json:",omitzero"`
	// Named is set once a span or a record has named a session.
	Named   bool   `json:",omitempty"`
	Frames  uint64 `json:",omitempty"` // with spans
	Dropped uint64 `json:",omitempty"` // spans of others, since the last run began
}

// Flush emits the spans that are held.
func (d *stream) Flush() {
	for _, t := range d.Traces {
		if len(t.Held) == 0 || t.session() == "" && d.Named {
			continue
		}
		decided := !d.profile.OneSource
		if turn := d.turn(t.session()); turn != nil && turn.From == "span" {
			decided = true
		}
		open := slices.DeleteFunc(slices.Clone(t.Held), func(s *Span) bool {
			return s.Stub && s.Response == "" && !s.Counted || !decided && (s.Kind == Chat || s.Kind == Tool || s.Counted) || t.unplaced(s)
		})
		if len(open) > 0 {
			d.release(t, open, d.Out, msg.Partial)
		}
	}
}

// Begin releases the spans that are held at the end of the stream.
func (d *stream) Begin() (record bool) {
	if d.Frame.Kind == frame.Close {
		d.releaseAll(d.Out)
	}
	return true
}

// Read decodes an object, or a list of them.
func (d *stream) Read() {
	d.seenSession = ""
	var grown []*trace
	if d.Root.Is(jsonv.Array) {
		for e := range d.Root.Elems() {
			grown = d.document(e, d.Out, grown)
		}
	} else {
		grown = d.document(d.Root, d.Out, grown)
	}
	for _, t := range grown {
		d.settle(t, d.Out)
	}
	d.age(d.Out)
}

// In returns the session that the frame named first.
func (d *stream) In() (session, run string) { return cmp.Or(d.seenSession, "unknown"), "" }

// document decodes an object of a frame, and returns the traces that have grown.
func (d *stream) document(v jsonv.Value, out *decoder.Output, grown []*trace) []*trace {
	spans, logs := v.First("resourceSpans", "resource_spans"), v.First("resourceLogs", "resource_logs")
	switch {
	case spans.Is(jsonv.Array):
		for resource := range spans.Elems() {
			for scope := range resource.First("scopeSpans", "scope_spans").Elems() {
				d.scope = scope.Path("scope", "name").PeekStr()
				for span := range scope.Get("spans").Elems() {
					grown = d.span(span, grown)
				}
				d.scope = ""
			}
		}
		d.Frames++
	case logs.Is(jsonv.Array):
		for resource := range logs.Elems() {
			for scope := range resource.First("scopeLogs", "scope_logs").Elems() {
				for record := range scope.First("logRecords", "log_records").Elems() {
					grown = d.log(record, out, grown)
				}
			}
		}
	case v.First("resourceMetrics", "resource_metrics").Is(jsonv.Array):
	case v.Get("type").Equal("metric"):
		v.MarkRead()
	case v.First("traceId", "trace_id", "spanContext").Exists() && v.First("name", "attributes").Exists():
		grown = d.span(v, grown)
		d.Frames++
	case attributes(v, d.table, d.profile.Indexed):
		grown = d.bare(v, grown)
		d.Frames++
	default:
		typ := cmp.Or(ident.Peek(v.Get("type")), "none")
		m := out.Unknown(typ, v.Raw())
		m.Session, m.Key = "unknown", "unknown:"+msg.HashKey(string(v.Peek()))
	}
	return grown
}

// attributes reports whether an object is the attributes of a span.
func attributes(v jsonv.Value, t table, prefixes map[string]Field) bool {
	for key := range v.Members() {
		name := key.String()
		if e, ok := t[name]; ok && strings.Contains(name, ".") && e.field != EventName {
			return true
		}
		for p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
	}
	return false
}

// span reads a span and adds it to its trace.
func (d *stream) span(v jsonv.Value, grown []*trace) []*trace {
	if !v.Is(jsonv.Object) {
		return grown
	}
	context := v.Get("spanContext")
	hexID(v.Path("parentSpanContext", "traceId"), 16) // that of the span
	s := &Span{
		Trace: hexID(first(v, context, "traceId", "trace_id"), 16), ID: hexID(first(v, context, "spanId", "span_id"), 8),
		Parent: hexID(first(v, v.Get("parentSpanContext"), "parentSpanId", "parent_span_id", "spanId"), 8), Name: ident.Of(v.Get("name")),
		Start: timeOf(v.First("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")),
		End:   timeOf(v.First("endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time")),
	}
	if context.Exists() && v.Get("parentSpanContext").Kind() == jsonv.Missing && v.First("parentSpanId", "parent_span_id").Kind() == jsonv.Missing {
		s.Parent = ""
	}
	s.End = max(s.End, s.Start)
	r := reader{profile: d.profile, table: d.table}
	if list := v.Get("attributes"); list.Is(jsonv.Array) || context.Exists() || v.Get("startTime").Is(jsonv.Array) {
		r.read(s, list)
	}
	status := v.Get("status")
	if code := status.Get("code"); code.Int() == 2 || code.In("STATUS_CODE_ERROR", "ERROR") {
		s.Failed = true
	}
	if text := status.Get("message"); text.Is(jsonv.String) {
		s.Message = text.Str()
	}
	kind := v.Get("kind")
	if n := kind.PeekStr(); strings.HasPrefix(n, "SPAN_KIND_") {
		kind.MarkRead()
	}
	server := 2
	if context.Exists() {
		server = 1 // of the JavaScript SDK, which begins with INTERNAL
	}
	s.Serves = s.Parent != "" && (kind.Equal("SPAN_KIND_SERVER") || kind.Is(jsonv.Number) && int(kind.Int()) == server)
	s.Failed = s.Failed || s.ErrorType != ""
	r.done(s)
	s.MCP = s.Has("mcp.method.name") != "" || strings.HasSuffix(d.scope, ".mcp") // OpenLLMetry's has no attribute of it
	for e := range v.Get("events").Elems() {
		d.spanEvent(s, e)
	}
	for l := range v.Get("links").Elems() {
		s.Attr("link", hexID(l.First("traceId", "trace_id"), 16)+"/"+hexID(l.First("spanId", "span_id"), 8))
	}
	d.profile.Rules(s)
	if s.ID == "" {
		s.ID = s.hash()[:16]
	}
	if s.Trace == "" {
		s.Trace = s.ID
	}
	return d.hold(s, grown)
}

// hash is a name by the fields of a span or a record that has no id.
func (s *Span) hash() string {
	list := []string{s.Name, strconv.FormatInt(s.Start, 10), strconv.FormatInt(s.End, 10), s.Session, s.Run, s.Op, s.AgentID, s.Asked, s.Model, s.Response, s.Call, s.Tool, s.Args, s.Result, s.Message}
	for _, p := range append(s.In, s.Out...) {
		list = append(list, p.Kind.String(), p.Text, p.Call)
	}
	return msg.HashKey(list...)
}

// first is a member of v, or of the object that has it in the JavaScript SDK.
func first(v, context jsonv.Value, names ...string) jsonv.Value {
	for _, name := range names {
		if m := v.Get(name); m.Exists() && (name != "spanId" || len(names) == 2) {
			return m
		}
	}
	return context.First(names...)
}

// bare reads an object that is the attributes of a span.
func (d *stream) bare(v jsonv.Value, grown []*trace) []*trace {
	s := new(Span)
	r := reader{profile: d.profile, table: d.table}
	r.read(s, v)
	r.done(s)
	d.profile.Rules(s)
	s.Trace = s.hash()
	s.ID = s.Trace[:16]
	return d.hold(s, grown)
}

// spanEvent reads an event of a span.
func (d *stream) spanEvent(s *Span, e jsonv.Value) {
	name := ident.Of(e.Get("name"))
	at := timeOf(e.First("timeUnixNano", "time_unix_nano", "time"))
	of := &Span{Start: at, End: at}
	r := reader{profile: d.profile, table: d.table}
	r.read(of, e.Get("attributes"))
	r.done(of)
	if name == "exception" {
		if s.Message == "" {
			s.Message = of.Take("exception.message")
		}
		if s.ErrorType == "" {
			s.ErrorType = of.Take("exception.type")
		}
		s.Attrs = addAttrs(s.Attrs, of.Attrs)
		return
	}
	if d.profile.Event(of, name, Value{}) {
		s.merge(of)
		return
	}
	s.Attr("event", name)
	for _, a := range of.Attrs {
		s.Attr(name+"/"+a.Key, a.Value)
	}
	of.Attrs = nil
	s.merge(of)
}

// log reads a log record: of its span, or of a turn of its session.
func (d *stream) log(v jsonv.Value, out *decoder.Output, grown []*trace) []*trace {
	if !v.Is(jsonv.Object) {
		return grown
	}
	s := &Span{Trace: hexID(v.First("traceId", "trace_id"), 16), ID: hexID(v.First("spanId", "span_id"), 8)}
	r := reader{profile: d.profile, table: d.table}
	r.read(s, v.Get("attributes"))
	at := timeOf(v.First("timeUnixNano", "time_unix_nano"))
	observed := timeOf(v.First("observedTimeUnixNano", "observed_time_unix_nano"))
	s.End = cmp.Or(r.at, at, observed)
	s.Start = max(s.End-int64(s.took), 0)
	body := valueOf(v.Get("body"), false)
	name := cmp.Or(r.event, ident.Of(v.First("eventName", "event_name")))
	if text := body.leaf.PeekStr(); name == "" && body.json == "" && len(text) <= ident.Max && !strings.ContainsAny(text, " \n") {
		name = text
	}
	if body.json == "" && body.leaf.Equal(name) {
		body = Value{}
	}
	v.First("severityText", "severity_text").In("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
	if r.event != "" {
		v.Get("eventName").MarkRead()
	}
	r.done(s)
	s.Name = name
	if !d.profile.Event(s, name, body) {
		s.Kind = max(s.Kind, Note)
	}
	if body.Exists() && s.Kind == Note {
		if text, ok := body.attr(); ok {
			s.Attr("body", text)
		}
	}
	id := s.hash()
	for _, a := range s.Attrs {
		id = msg.HashKey(id, a.Key, a.Value)
	}
	if !d.Seen.Add("="+msg.HashKey(s.Trace, s.ID, id)[:16], maxSeen) {
		return grown // a client repeats an export whose answer it has not seen
	}
	if s.ID != "" && s.Trace != "" && !d.profile.Direct && s.Kind != Note {
		s.Stub = true
		return d.hold(s, grown)
	}
	s.ID, s.Trace = id[:16], ""
	d.seenSession = cmp.Or(d.seenSession, s.Session)
	d.record(s, out)
	return grown
}
