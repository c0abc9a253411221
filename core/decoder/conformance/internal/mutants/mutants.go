package mutants

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Mutants returns all animals, by the rules that they break.
func Mutants() []Mutant {
	return []Mutant{
		{"sheep", "D1", "all decoders of a process share one state", func(p *parrot, h *herd) *animal {
			if h.state == nil {
				h.state = p
			}
			return &animal{parrot: h.state}
		}},
		{"goldfish", "D2", "the snapshot leaves out what is open", func(p *parrot, _ *herd) *animal {
			return &animal{parrot: p, snapshot: func() ([]byte, error) {
				return json.Marshal(state{Chat: p.Chat, Run: p.Run})
			}}
		}},
		{"packrat", "D3", "keeps a frame's data beyond the call", packrat},
		{"rooster", "D4", "looks at the clock", after(func(_ *frame.Frame, m *msg.Message) {
			m.Time = time.Now().UnixNano()
		})},
		{"heron", "D4", "takes the time of reading for the time of the event", after(func(f *frame.Frame, m *msg.Message) {
			m.Time = f.At + 1
		})},
		{"rabbit", "D4", "leaves a goroutine behind", func(p *parrot, h *herd) *animal {
			go func() { <-h.done }()
			return &animal{parrot: p}
		}},
		{"squirrel", "D5", "draws keys at random", after(func(_ *frame.Frame, m *msg.Message) {
			m.Key = rand.Text()
		})},
		{"mole", "D5", "keys are positions in the file", after(func(f *frame.Frame, m *msg.Message) {
			m.Key = fmt.Sprint(m.Kind, f.Pos)
		})},
		{"centipede", "D5", "keys count the frames", centipede},
		{"woodpecker", "D5", "every delta is a message", woodpecker},
		{"chameleon", "D5", "the reloaded form has other keys", chameleon},
		{"snail", "D5", "open messages have other keys than complete ones", func(p *parrot, _ *herd) *animal {
			return &animal{parrot: p, flush: flushed(p, func(m *msg.Message) { m.Key += "/open" })}
		}},
		{"magpie", "D6", "a complete message is given again, changed", magpie},
		{"bat", "D7", "drops what it does not know", onUnknown(func(out *decoder.Output) error {
			last := len(out.Messages) - 1
			out.Messages[last] = msg.Message{}
			out.Messages = out.Messages[:last]
			return nil
		})},
		{"swallow", "D7", "reads past a text that is a list, or that it does not know", swallow},
		{"oyster", "D7", "gives up at what it does not know", onUnknown(func(*decoder.Output) error {
			return errors.New("unknown type")
		})},
		{"cat", "D8", "gives up at a bad frame", onProblem(func(*decoder.Output) error {
			return errors.New("bad frame")
		})},
		{"dog", "D8", "gives two problems for a bad frame", onProblem(func(out *decoder.Output) error {
			out.Problem("bad_frame", "again")
			return nil
		})},
		{"goat", "D8", "swallows bad frames", onProblem(func(out *decoder.Output) error {
			out.Problems = out.Problems[:len(out.Problems)-1]
			return nil
		})},
		{"opossum", "D8", "panics at a bad frame", onProblem(func(*decoder.Output) error {
			panic("bad frame")
		})},
		{"deer", "D8", "panics at a value of another type than it expects", deer},
		{"ostrich", "D8", "after a bad frame it knows nothing any more", ostrich},
		{"sloth", "D9", "gives up when the stream is cut off", func(p *parrot, _ *herd) *animal {
			return &animal{parrot: p, flush: func(*decoder.Output) error {
				if len(p.Open) > 0 {
					return errors.New("incomplete")
				}
				return nil
			}}
		}},
		{"lemming", "D10", "Flush forgets what is open", func(p *parrot, _ *herd) *animal {
			return &animal{parrot: p, flush: func(out *decoder.Output) error {
				err := p.Flush(out)
				p.Open = nil
				return err
			}}
		}},
		{"peacock", "D10", "Flush gives what is open as complete", func(p *parrot, _ *herd) *animal {
			return &animal{parrot: p, flush: flushed(p, func(m *msg.Message) { m.Complete = msg.Complete })}
		}},
		{"elephant", "D11", "remembers every message for ever", hoard(true)},
		{"hamster", "D11", "remembers every message for ever, and not in its snapshot", hoard(false)},
		{"crab", "D12", "writes over the text that it returned", crab},
		{"cuckoo", "D12", "changes the attributes that it returned", cuckoo},
	}
}

// after changes each message that a frame gives.
func after(change func(*frame.Frame, *msg.Message)) func(*parrot, *herd) *animal {
	return func(p *parrot, _ *herd) *animal {
		return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Messages)
			err := p.Decode(f, out)
			for i := range out.Messages[n:] {
				change(f, &out.Messages[n+i])
			}
			return err
		}}
	}
}

// flushed changes each message that Flush gives.
func flushed(p *parrot, change func(*msg.Message)) func(*decoder.Output) error {
	return func(out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Flush(out)
		for i := range out.Messages[n:] {
			change(&out.Messages[n+i])
		}
		return err
	}
}

// onProblem does something when a frame was bad.
func onProblem(do func(*decoder.Output) error) func(*parrot, *herd) *animal {
	return func(p *parrot, _ *herd) *animal {
		return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Problems)
			if err := p.Decode(f, out); err != nil || len(out.Problems) == n {
				return err
			}
			return do(out)
		}}
	}
}

// onUnknown does something when a frame was of an unknown type.
func onUnknown(do func(*decoder.Output) error) func(*parrot, *herd) *animal {
	return func(p *parrot, _ *herd) *animal {
		return &animal{parrot: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Messages)
			if err := p.Decode(f, out); err != nil || len(out.Messages) == n || out.Messages[n].Kind != msg.Unknown {
				return err
			}
			return do(out)
		}}
	}
}
