package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
)

// WriteTo writes the conversation into a folder, as observers get it.
func (r *Recorded) WriteTo(dir string) error {
	for i, s := range r.Streams {
		name, data := filepath.Join(dir, "files", filepath.FromSlash(s.Origin)), lines(s.Frames)
		if s.Live {
			var err error
			if name, data, err = recording(dir, i, s.Frames); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // invented traffic
			return err
		}
		if err := os.WriteFile(name, data, 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}

func lines(frames []frame.Frame) []byte {
	var out []byte
	for _, f := range frames {
		out = append(append(out, f.Data...), '\n')
	}
	return out
}

func recording(dir string, i int, frames []frame.Frame) (name string, data []byte, err error) {
	for j := range frames {
		if data, err = fixture.AppendFrame(data, &frames[j]); err != nil {
			return "", nil, err
		}
	}
	return filepath.Join(dir, fmt.Sprintf("%02d.frames.jsonl", i)), data, nil
}

// Observe calls an observer, a command, and returns its view of the conversation in the folder; nil if it prints
// nothing, because it does not read the format.
func Observe(ctx context.Context, command, format, dir string) (*Conversation, error) {
	words := append(strings.Fields(command), format, dir)
	c := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user's own
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, stderr.Bytes())
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	var got Conversation
	if err := json.Unmarshal(out, &got); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return &got, nil
}
