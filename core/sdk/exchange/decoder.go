package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// API is the format of a provider: how it writes requests and responses.
type API struct {
	Name     string // of the format
	Revision uint32
	Summary  string
	Provider string // gen_ai.provider.name, unless the address is of another; see ProviderAt
	// Request decodes a request body, which is an object.
	Request func(x *Exchange, v jsonv.Value, out *decoder.Output)
	// Event decodes an event of a response.
	Event func(x *Exchange, v jsonv.Value, out *decoder.Output)
	// Whole decodes a response that is one body; nil: Event does.
	Whole func(x *Exchange, v jsonv.Value, out *decoder.Output)
	// Done handles [DONE]; nil: it is ignored.
	Done func(x *Exchange, out *decoder.Output)
	// Retrieved returns the id of the response that an address is of; nil: no response is asked for again.
	Retrieved func(origin string) string
	// Many is set if a body may be a list of events, as Google's servers write a stream and an error in its place, and an event may
	// have one on each line, as where a proxy or a recorder has lost the empty lines of a stream.
	Many bool
	// Lines is set if a response may be lines of JSON.
	Lines bool
	// Socket is set if exchanges may be messages of a WebSocket, of which Event knows the requests.
	Socket bool
	// Rest keeps the fields that none of them reads.
	Rest *unknown.Keeper
}

// Factory makes decoders of the API's format.
func (a API) Factory() decoder.Factory { return factory{a} }

type factory struct{ api API }

// Info implements decoder.Factory.
func (f factory) Info() decoder.Info {
	transports := []frame.Kind{frame.Request, frame.Event, frame.Body}
	if f.api.Lines {
		transports = append(transports, frame.Line)
	}
	if f.api.Socket {
		transports = append(transports, frame.Text)
	}
	return decoder.Info{
		Name: f.api.Name, Version: "1.0.0", Revision: f.api.Revision, Summary: f.api.Summary,
		Transports: transports, Options: json.RawMessage(Schema), LocalIDs: true,
	}
}

// New implements decoder.Factory.
func (f factory) New(s decoder.Stream) (decoder.Decoder, error) {
	agent, err := Options(s.Options)
	if err != nil {
		return nil, fmt.Errorf("%s: options: %w", f.api.Name, err)
	}
	d := &stream{api: f.api, x: Exchange{Agent: agent, Provider: ProviderAt(s.Origin, f.api.Provider), Source: s.Source}}
	if f.api.Retrieved != nil {
		d.x.Retrieved = f.api.Retrieved(s.Origin)
	}
	return d, nil
}

// Schema is that of the options which Options reads.
const Schema = `{"type":"object","additionalProperties":false,"properties":{"agent":{"type":"string","maxLength":256,"description":"name of the agent, which the traffic does not have"}}}`

// Options reads the options of a source: the name of the agent.
func Options(raw json.RawMessage) (agent string, err error) {
	o := struct {
		Agent string `json:"agent"`
	}{"agent"}
	if len(raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return "", err
		}
	}
	if o.Agent == "" || len(o.Agent) > ident.Max {
		return "", errors.New("agent: expected a name of up to 256 bytes")
	}
	return o.Agent, nil
}

// stream decodes the exchanges of one stream.
type stream struct {
	api API
	doc jsonv.Doc
	x   Exchange
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Resource returns the id behind a word in the path of an address: https://host/v1/responses/ID/cancel?x. It is empty if that is one
// of others, which are no ids.
func Resource(origin, word string, others ...string) string {
	path, _, _ := strings.Cut(origin, "?")
	id := ident.Below(path, "/"+word+"/")
	if slices.Contains(others, id) {
		return ""
	}
	return id
}

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return json.Marshal(&d.x) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return json.Unmarshal(b, &d.x) }

// Flush implements decoder.Decoder.
func (d *stream) Flush(out *decoder.Output) error {
	d.x.Flush(out)
	return nil
}

// Decode implements decoder.Decoder.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		if d.x.Stop != "" && d.x.Stop != "error" { // some servers send neither [DONE] nor the usage that comes before it
			d.x.End(out)
		}
		return nil
	}
	if bytes.Equal(bytes.TrimSpace(f.Data), []byte("[DONE]")) {
		if d.api.Done != nil {
			d.api.Done(&d.x, out)
		}
		return nil
	}
	if f.Kind == frame.Request && len(bytes.TrimSpace(f.Data)) == 0 { // one that only names its object, such as a response to cancel
		d.x.Caller.answered(f.ID)
		return nil
	}
	if d.api.Many && f.Kind == frame.Event && objects(f.Data) {
		for line := range bytes.Lines(f.Data) {
			one := *f
			one.Data = line
			if err := d.Decode(&one, out); err != nil {
				return err
			}
		}
		return nil
	}
	if d.api.Lines && f.Kind == frame.Body && objects(f.Data) { // of a type that is no text
		for line := range bytes.Lines(f.Data) {
			one := *f
			one.Kind, one.Data = frame.Line, line
			if err := d.Decode(&one, out); err != nil {
				return err
			}
		}
		return nil
	}
	v, ok := d.parse(f, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	d.x.Name = f.Name
	switch {
	case v.Is(jsonv.Array):
		for e := range v.Elems() {
			d.api.Event(&d.x, e, out)
		}
	case f.Kind == frame.Request:
		d.x.Path = f.Name
		d.x.headers = d.x.Caller.headers(f.ID)
		d.api.Request(&d.x, v, out)
	case f.Kind == frame.Body && d.api.Whole != nil:
		d.api.Whole(&d.x, v, out)
	default:
		d.api.Event(&d.x, v, out)
	}
	d.api.Rest.Keep(&d.doc, out, before, func(m *msg.Message) { d.x.of(m) })
	return nil
}

// objects reports whether each of several lines is an object.
func objects(data []byte) bool {
	n := 0
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' || !json.Valid(line) {
			return false
		}
		n++
	}
	return n > 1
}

// parse parses a frame that is an object, or a list of events.
func (d *stream) parse(f *frame.Frame, out *decoder.Output) (v jsonv.Value, ok bool) {
	if d.api.Many && f.Kind == frame.Body {
		if v, ok = conversation.Parse(&d.doc, f.Data, out); !ok || v.Is(jsonv.Array) {
			return v, ok
		}
	}
	return conversation.ParseObject(&d.doc, f.Data, out)
}
