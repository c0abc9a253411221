package msg

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// TimeFormat is how a row writes times.
const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// timeText returns a time in Unix nanoseconds as a row writes it; empty when there is none.
func timeText(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(TimeFormat)
}

// hexText returns an id in hex; empty when it is zero.
func hexText(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}

// result returns the content of a result.
func (m *Message) result() string {
	if m.Kind == ToolResult || m.Kind == DelegationResult {
		return m.Content.String()
	}
	return ""
}

// attributes returns the entries of EachAttribute; nil when there are none.
func (m *Message) attributes() (all map[string]string) {
	m.EachAttribute(func(k, v string) {
		if all == nil {
			all = make(map[string]string)
		}
		all[k] = v
	})
	return all
}

func (m *Message) timePrecision() string {
	if m.Time == 0 {
		return ""
	}
	return m.Precision.String()
}

// summary is the completeness of a message where the column complete does not hold it.
func (m *Message) summary() string {
	if m.Complete == Summary {
		return Summary.String()
	}
	return ""
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func percent(n uint8) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// eachAttr calls f for the first of Attrs with each key that no field has.
func (m *Message) eachAttr(f func(key, value string)) {
	for i, a := range m.Attrs {
		if !isField(a.Key) && !before(m.Attrs[:i], a.Key) {
			f(a.Key, a.Value)
		}
	}
}

func before(attrs []Attr, key string) bool {
	for _, a := range attrs {
		if a.Key == key {
			return true
		}
	}
	return false
}

// attachments returns the list as JSON; empty when there is none.
func attachments(list []Attachment) string {
	if len(list) == 0 {
		return ""
	}
	type attachment struct {
		Name      string `json:"name,omitempty"`
		MediaType string `json:"media_type,omitempty"`
		Size      int64  `json:"size,omitempty"`
		SHA256    string `json:"sha256,omitempty"`
		URL       string `json:"url,omitempty"`
	}
	out := make([]attachment, len(list))
	for i, a := range list {
		out[i] = attachment(a)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}

// AppendJSON appends the row as one line of JSON, without the newline.
func (r Row) AppendJSON(dst []byte) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}
