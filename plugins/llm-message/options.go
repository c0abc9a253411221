package llmmessage

import (
	"encoding/json"
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

func optionSchema() json.RawMessage {
	return json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,` +
		`"properties":{"timezone":{"type":"string","default":"UTC","description":` +
		`"Zone of the agent's clock, for its times have none: a name like Europe/Berlin, or an offset like +02:00."}}}`)
}

// parseOptions returns the zone of times without one.
func parseOptions(raw json.RawMessage) (*time.Location, error) {
	if len(raw) == 0 {
		return time.UTC, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("llm-message: options: %w", err)
	}
	zone := time.UTC
	for name, value := range members {
		if name != "timezone" {
			return nil, fmt.Errorf("llm-message: option %q: there is only timezone", name)
		}
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("llm-message: option timezone: %w", err)
		}
		var err error
		if zone, err = parseZone(s); err != nil {
			return nil, fmt.Errorf("llm-message: option timezone: %w", err)
		}
	}
	return zone, nil
}

func parseZone(s string) (*time.Location, error) {
	if t, err := time.Parse("Z07:00", s); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(s, offset), nil
	}
	if s == "Local" { // of the machine that decodes: not a fact of the stream
		return nil, fmt.Errorf("unknown time zone %s", s)
	}
	return time.LoadLocation(s)
}

// at is a time with the precision of its notation.
type at struct {
	Time      int64
	Precision msg.Precision
}

// parseTime reads a time; one without a zone is in the zone of the option.
func parseTime(v jsonv.Value, zone *time.Location) at {
	ns, p, ok := when.Value(v)
	if !ok {
		return at{}
	}
	if zone != time.UTC && v.Is(jsonv.String) && hasNoZone(v.Str()) {
		t := time.Unix(0, ns).UTC()
		ns = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UnixNano()
	}
	return at{max(ns, 0), p}
}

// hasNoZone reports whether an ISO 8601 time names no zone.
func hasNoZone(s string) bool {
	if len(s) < 19 || s[4] != '-' {
		return false
	}
	for _, c := range s[19:] {
		switch c {
		case 'Z', 'z', '+', '-':
			return false
		}
	}
	return true
}
