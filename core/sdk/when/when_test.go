package when

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestParse(t *testing.T) {
	const base = 1761073198 * int64(1e9) // 2025-10-21T18:59:58Z
	for in, want := range map[string]struct {
		ns int64
		p  msg.Precision
	}{
		"2025-10-21T18:59:58Z":             {base, msg.Seconds},
		"2025-10-21T18:59:58.228585+00:00": {base + 228585000, msg.Micros},
		"2025-10-21T20:59:58.228+02:00":    {base + 228000000, msg.Millis},
		"2025-10-21T18:59:58.228585":       {base + 228585000, msg.Micros},
		"2025-10-21 18:59:58":              {base, msg.Seconds},
		"2025-10-21 18:59:58.5+00:00":      {base + 500000000, msg.Millis},
		"2025-10-21T18:59:58.123456789Z":   {base + 123456789, msg.Nanos},
		"2025-10-21T18:59:58+0000":         {base, msg.Seconds},
		"1761073198":                       {base, msg.Seconds},
		"1761073198.2721586":               {base + 272158600, msg.Nanos},
		"1761073198.0":                     {base, msg.Seconds},
		"1761073198.25":                    {base + 250000000, msg.Millis},
		"1761073198272":                    {base + 272000000, msg.Millis},
		"1761073198272.5":                  {base + 272500000, msg.Micros},
		"1761073198272158":                 {base + 272158000, msg.Micros},
		"1761073198272158600":              {base + 272158600, msg.Nanos},
		" 1761073198 ":                     {base, msg.Seconds},
	} {
		ns, p, ok := Parse(in)
		if !ok || ns != want.ns || p != want.p {
			t.Errorf("%q: got %d %s %v, want %d %s", in, ns, p, ok, want.ns, want.p)
		}
	}
	for _, in := range []string{"", "now", "12", "1e18", "-1761073198", "2025-13-21T18:59:58Z", "2025-10-21", "0001-01-01T00:00:00Z", "99999999999999999999", "1761073198.2x", "2500-01-01T00:00:00Z"} {
		if ns, _, ok := Parse(in); ok {
			t.Errorf("%q: taken for %d", in, ns)
		}
	}
}

// A time of the usual length is read without an allocation: most records have one.
func TestValueAllocatesNothing(t *testing.T) {
	var doc jsonv.Doc
	for _, in := range []string{`"2025-10-21T18:59:58.228585+00:00"`, `"2025-10-21T18:59:58Z"`} {
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { Value(doc.Root()) }); n != 0 {
			t.Errorf("%s: %v allocations", in, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2025-10-21T18:59:58.228585+00:00")
	f.Add("1761073198.2721586")
	f.Fuzz(func(t *testing.T, s string) {
		if ns, _, ok := Parse(s); ok && ns < 0 {
			t.Errorf("%q: %d", s, ns)
		}
	})
}
