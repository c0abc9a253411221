package agno

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// form has the fields of a request.
type form struct {
	message, session, user, tools string
	more                          map[string]string // unknown fields
	files                         []msg.Attachment
	ok                            bool
}

// request decodes the body of a request:
//
//	POST /teams/{id}/runs, …/run           message, session_id, user_id, files
//	POST /agents/{id}/runs/{run}/continue  tools: the decisions on the calls that wait
//	POST /…/runs/{run}/cancel
//
// A request starts no run by itself: its id is in the events of the answer.
func (s *stream) request(f *frame.Frame) {
	method, path, _ := strings.Cut(valid(f.Name), " ")
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := -1
	for i, p := range parts {
		if p == "runs" || p == "run" && i == len(parts)-1 && i > 1 { // a proxy before AgentOS may use this path
			at = i
		}
	}
	if method != "POST" || at < 0 {
		return // a read; its response is decoded
	}
	b := s.form(f.Data)
	if !b.ok {
		if len(bytes.TrimSpace(f.Data)) > 0 {
			s.problem(msg.ReasonInvalid, "a request body that is no form and no JSON object")
		}
		return
	}
	s.keepFields(&b)
	h := pending{Kind: pendingRequest, Type: strings.Join(parts[max(at-2, 0):], "/"), Session: b.session, User: b.user, Text: b.message, Files: b.files}
	switch rest := parts[at+1:]; {
	case len(rest) == 0:
		s.addPending(h)
	case len(rest) == 2 && rest[1] == "continue":
		h.Kind, h.Run, h.Data = pendingDecision, rest[0], b.tools
		s.addPending(h)
	default: // cancel, resume
		h.Kind = pendingControl
		h.Run = rest[0]
		h.Type = rest[len(rest)-1]
		s.emitControl(h)
	}
}

// emitControl emits an event of the connection now, or when its session is known.
func (s *stream) emitControl(h pending) {
	if s.runs[h.Run] == nil && h.Session == "" && s.session == "" {
		s.addPending(h)
		return
	}
	s.emitConnection(&h)
}

// form reads a body. The content type is not in the frame; the first bytes show it.
func (s *stream) form(body []byte) (b form) {
	body = bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(body) == 0:
		return form{}
	case body[0] == '{':
		s.read(body, func(root jsonv.Value) {
			b = form{
				message: asText(root.First("message", "input")).String(), session: ident(root.Get("session_id")),
				user: ident(root.Get("user_id")), tools: asJSON(root.Get("tools")), ok: true,
			}
		})
		return b
	case bytes.HasPrefix(body, []byte("--")):
		return parts(body)
	}
	values, err := url.ParseQuery(string(body))
	get := func(name string) string { return valid(values.Get(name)) }
	if err != nil || get("message") == "" && get("tools") == "" && get("stream") == "" && get("session_id") == "" {
		return form{}
	}
	b = form{message: get("message"), session: short(get("session_id")), user: short(get("user_id")), tools: get("tools"), ok: true}
	for name, list := range values {
		if !slices.Contains([]string{"message", "session_id", "user_id", "tools"}, name) {
			b.add(name, strings.Join(list, "\n"))
		}
	}
	return b
}

// add adds an unknown field.
func (b *form) add(name, value string) {
	if len(value) < unknown.MinSize {
		return
	}
	if b.more == nil {
		b.more = make(map[string]string)
	}
	b.more[valid(name)] = valid(value)
}

// keepFields keeps the unknown fields of a form.
func (s *stream) keepFields(b *form) {
	if len(b.more) == 0 {
		return
	}
	raw, err := json.Marshal(b.more)
	if err != nil { // strings always have a JSON form
		return
	}
	m := s.out.Unknown(unknown.Attr, raw)
	if m.Session = b.session; m.Session == "" {
		m.Session = s.sessionFor(jsonv.Value{})
	}
	m.Key = unknown.Attr + ":" + msg.HashKey(m.Session, string(raw))
}

// valid returns typed text as UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// asJSON returns a value that may be JSON in a string.
func asJSON(v jsonv.Value) string {
	if v.Is(jsonv.String) {
		return v.Str()
	}
	return string(v.Raw())
}

func short(id string) string {
	if len(id) > maxID {
		return msg.HashKey(id)
	}
	return id
}

// maxField limits the kept bytes of a form's field.
const maxField = 8 << 20

// parts reads a multipart form. A truncated body yields the parts before the cut.
func parts(body []byte) (b form) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	boundary := string(bytes.TrimSpace(line[2:]))
	if boundary == "" || len(boundary) > 200 {
		return form{}
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range 1024 {
		p, err := r.NextRawPart()
		if err != nil {
			break
		}
		b.ok = true
		if name := p.FileName(); name != "" {
			h := sha256.New()
			size, err := io.Copy(h, p)
			a := msg.Attachment{Name: valid(name), MediaType: valid(p.Header.Get("Content-Type")), Size: size}
			if err == nil {
				a.SHA256 = hex.EncodeToString(h.Sum(nil))
			}
			b.files = append(b.files, a)
			continue
		}
		value, err := io.ReadAll(io.LimitReader(p, maxField))
		text := valid(string(value))
		switch p.FormName() {
		case "message":
			b.message = text
		case "session_id":
			b.session = short(text)
		case "user_id":
			b.user = short(text)
		case "tools":
			b.tools = text
		default:
			b.add(p.FormName(), text)
		}
		if err != nil {
			break
		}
	}
	return b
}
