package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Resume describes how a stream of one run continues after a broken connection: the fields
// of the events that carry the position, and the request that starts behind it.
type Resume struct {
	// Field of an event's JSON object that names its run.
	Run string `yaml:"run" json:"run"`
	// Field that only events of nested runs have: such an event does not name the run.
	Nested string `yaml:"nested" json:"nested"`
	// Field that names the session. Empty: the events have none.
	Session string `yaml:"session" json:"session"`
	// Field with the number of the event; the numbers of a run rise.
	Number string `yaml:"number" json:"number"`
	// Path of the request, with {{run}} between two slashes. A URL that ends like this path
	// around {{run}} is requested as it is; in any other URL this path replaces everything
	// from its first segment on.
	Path string `yaml:"path" json:"path"`
	// Method of the request to that path.
	Method string `yaml:"method" json:"method"`
	// Parameters of the request, with {{run}}, {{session}} and {{number}}. A parameter
	// whose value is unknown is left out.
	Parameters map[string]string `yaml:"parameters" json:"parameters"`
	// Place of the parameters: query, form (the whole body), or json (fields of the body; a
	// GET has them in the query).
	In string `yaml:"in" json:"in"`
	// How the stream ends: close (the server ends the response by the protocol), or empty
	// (a response has no events). The event [DONE] always ends it.
	End string `yaml:"end" json:"end"`
}

// The values of In and End.
const (
	InQuery  = "query"
	InForm   = "form"
	InJSON   = "json"
	EndClose = "close"
	EndEmpty = "empty"
)

const runVariable = "{{run}}"

// SetDefaults implements spec.Defaults.
func (r *Resume) SetDefaults() { *r = Resume{Method: "POST", In: InQuery, End: EndClose} }

// Validate implements spec.Section.
func (r *Resume) Validate(c *spec.Check) {
	c.Required("run", r.Run)
	c.Required("number", r.Number)
	if c.Required("path", r.Path) && (!strings.HasPrefix(r.Path, "/") || r.around() == nil) {
		c.Report("path", "a path begins with / and has "+runVariable+" as a segment behind another", "")
	}
	c.OneOf("method", r.Method, "GET", "POST", "PUT")
	c.OneOf("in", r.In, InQuery, InForm, InJSON)
	c.OneOf("end", r.End, EndClose, EndEmpty)
}

// ParseResume reads the description that a decoder has of its format.
func ParseResume(description json.RawMessage) (*Resume, error) {
	r := new(Resume)
	return r, ParsePreset(description, r)
}

// Preset is a section that a decoder can describe for its format.
type Preset interface {
	spec.Section
	spec.Defaults
}

// ParsePreset reads a decoder's description of its format into a section. Its keys are those
// of the section in the configuration.
func ParsePreset(description json.RawMessage, into Preset) error {
	into.SetDefaults()
	d := json.NewDecoder(bytes.NewReader(description))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the decoder's description of the format: %w", err)
	}
	if err := spec.Validate(into); err != nil {
		return fmt.Errorf("the decoder's description of the format: %w", err)
	}
	return nil
}

// around returns the segments of Path from the one before {{run}} on; nil when there is none.
func (r *Resume) around() []string {
	segments := strings.Split(strings.Trim(r.Path, "/"), "/")
	for i, s := range segments {
		if s == runVariable && i > 0 {
			return segments[i-1:]
		}
	}
	return nil
}

// RunOf returns the run that a request to the path resumes; empty when the path is another.
func (r *Resume) RunOf(path string) string {
	want := r.around()
	have := strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(have) < len(want) {
		return ""
	}
	run := ""
	for i, segment := range have[len(have)-len(want):] {
		switch {
		case want[i] == runVariable:
			run = segment
		case want[i] != segment:
			return ""
		}
	}
	if name, err := url.PathUnescape(run); err == nil {
		run = name
	}
	return run
}

// Position is how far a run was read.
type Position struct {
	Run     string `json:"run,omitempty"`
	Session string `json:"session,omitempty"`
	Number  *int64 `json:"index,omitempty"` // of the last event that had one
}

// Known reports whether the run can be resumed.
func (p *Position) Known() bool { return p.Run != "" && p.Number != nil }

// Advance moves the position behind an event. A team's stream has the events of its members
// in it; it is resumed as the team's own.
func (r *Resume) Advance(p *Position, event []byte) {
	run, number, object := r.event(event)
	if p.Run == "" && text(object[r.Nested]) == "" {
		p.Run = run
	}
	if p.Session == "" && r.Session != "" {
		p.Session = text(object[r.Session])
	}
	if number != nil && (p.Number == nil || *number > *p.Number) {
		p.Number = number
	}
}

// NumberedRun returns the run of an event that has a number; empty when it has none.
func (r *Resume) NumberedRun(event []byte) string {
	if !bytes.Contains(event, []byte(`"`+r.Number+`"`)) {
		return ""
	}
	run, number, _ := r.event(event)
	if number == nil {
		return ""
	}
	return run
}

// event returns the run and the number of an event. Both are empty in a sentinel.
func (r *Resume) event(data []byte) (run string, number *int64, object map[string]json.RawMessage) {
	if json.Unmarshal(data, &object) != nil {
		return "", nil, nil
	}
	if n, err := strconv.ParseInt(string(object[r.Number]), 10, 64); err == nil {
		number = &n
	}
	return text(object[r.Run]), number, object
}

// text returns a JSON string or number as text.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// Request changes the request of a stream into the one that continues behind the position.
// contentType is that of the body; empty when it stays.
func (r *Resume) Request(u *url.URL, method, body string, p *Position) (newMethod, newBody, contentType string, err error) {
	if r.RunOf(u.Path) == "" {
		method, body = r.Method, ""
		r.redirect(u, p.Run)
	}
	parameters := r.values(p)
	switch {
	case r.In == InForm:
		form := make(url.Values, len(parameters))
		for name, value := range parameters {
			form.Set(name, text(value))
		}
		return r.Method, form.Encode(), "application/x-www-form-urlencoded", nil
	case r.In == InQuery || method == "GET":
		q := u.Query()
		for name, value := range parameters {
			q.Set(name, text(value))
		}
		u.RawQuery = q.Encode()
		return method, body, "", nil
	}
	object := make(map[string]json.RawMessage)
	if body != "" {
		if err := json.Unmarshal([]byte(body), &object); err != nil {
			return "", "", "", fmt.Errorf("body: a stream with parameters in json is resumed with a JSON object: %w", err)
		}
	}
	for name, value := range parameters {
		object[name] = value
	}
	b, err := json.Marshal(object)
	return method, string(b), "application/json", err
}

// redirect replaces the path of a URL from the first segment of Path on, and drops the query.
func (r *Resume) redirect(u *url.URL, run string) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
	before, _, found := strings.Cut(u.EscapedPath(), "/"+first)
	if !found {
		before = ""
	}
	u.RawPath = before + strings.ReplaceAll(r.Path, runVariable, url.PathEscape(run))
	if p, err := url.PathUnescape(u.RawPath); err == nil {
		u.Path = p
	}
	u.RawQuery = ""
}

// values returns the parameters as JSON values; {{number}} alone is a number.
func (r *Resume) values(p *Position) map[string]json.RawMessage {
	variables := map[string]string{runVariable: p.Run, "{{session}}": p.Session, "{{number}}": strconv.FormatInt(*p.Number, 10)}
	out := make(map[string]json.RawMessage, len(r.Parameters))
parameters:
	for name, value := range r.Parameters {
		if value == "{{number}}" {
			out[name] = json.RawMessage(variables[value])
			continue
		}
		for variable, v := range variables {
			if strings.Contains(value, variable) && v == "" {
				continue parameters
			}
			value = strings.ReplaceAll(value, variable, v)
		}
		if b, err := json.Marshal(value); err == nil {
			out[name] = b
		}
	}
	return out
}
