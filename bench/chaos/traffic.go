package chaos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// secret is in some of the texts, in the shape of a key of a provider. It may be in none of Earshot's files.
const secret = "sk-ant-api03-" + "pL4nkT0nDr1fT5w1thTh3T1d3" + "AndTheHarbourSeals9871"

// traffic writes the agents' files.
type traffic struct {
	dir             string
	word            string // the first of each text; the number of the line is the second
	rng             *rand.Rand
	files           int
	written         map[string]int64 // bytes, by file, since it was last replaced
	lines           int              // whole lines so far
	torn            int
	bytes           int64
	Renames, Copies int
	copies          int
}

// step writes a few lines somewhere, or replaces a file.
func (t *traffic) step() error {
	name := filepath.Join(t.dir, fmt.Sprintf("%d.jsonl", t.rng.IntN(t.files)))
	switch k := t.rng.IntN(60); {
	case k == 0 && t.written[name] > 0:
		return t.rename(name)
	case k == 1 && t.written[name] > 0:
		return t.copyTruncate(name)
	}
	var b strings.Builder
	for range 1 + t.rng.IntN(20) {
		if t.rng.IntN(200) == 0 {
			fmt.Fprintf(&b, "{\"torn\":%d\n", t.torn)
			t.torn++
			continue
		}
		n := t.lines
		t.lines++
		at := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * 10 * time.Millisecond)
		fmt.Fprintf(&b, `{"type":"assistant","timestamp":%q,"session_id":"s%d","content":"%s %d %s","has_tool_calls":false,"has_tool_results":false,"metadata":{"uuid":"u%d"}}`+"\n",
			at.Format("2006-01-02T15:04:05.000Z"), n%7, t.word, n, t.filler(), n)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := f.WriteString(b.String())
	t.bytes += int64(n)
	t.written[name] += int64(n)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// filler is a text that is a secret now and then.
func (t *traffic) filler() string {
	if t.rng.IntN(20) == 0 {
		return secret
	}
	return strings.Repeat("x", t.rng.IntN(400))
}

// rename does the same as logrotate with create.
func (t *traffic) rename(name string) error {
	t.Renames++
	t.copies++
	t.written[name] = 0
	return os.Rename(name, fmt.Sprintf("%s.%d", name, t.copies))
}

// copyTruncate does the same as logrotate with copytruncate.
func (t *traffic) copyTruncate(name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	t.Copies++
	t.copies++
	out, err := os.OpenFile(fmt.Sprintf("%s.%d", name, t.copies), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	t.written[name] = 0
	return os.Truncate(name, 0)
}
