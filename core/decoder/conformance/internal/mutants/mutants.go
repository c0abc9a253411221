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

// Mutants returns the mutants, in the order of the rules that they break.
func Mutants() []Mutant {
	return []Mutant{
		{"one-state", "D1", "all decoders of a process share one state", func(p *referenceDecoder, sh *shared) *mutantDecoder {
			if sh.state == nil {
				sh.state = p
			}
			return &mutantDecoder{referenceDecoder: sh.state}
		}},
		{"snapshot-drops-open", "D2", "the snapshot leaves out the open answers", func(p *referenceDecoder, _ *shared) *mutantDecoder {
			return &mutantDecoder{referenceDecoder: p, snapshot: func() ([]byte, error) {
				return json.Marshal(state{Chat: p.Chat, Run: p.Run})
			}}
		}},
		{"keeps-frame", "D3", "keeps a frame's data beyond the call", keepsFrame},
		{"reads-clock", "D4", "reads the clock", after(func(_ *frame.Frame, m *msg.Message) {
			m.Time = time.Now().UnixNano()
		})},
		{"time-of-reading", "D4", "uses the time of reading as the time of the event", after(func(f *frame.Frame, m *msg.Message) {
			m.Time = f.At + 1
		})},
		{"leaks-goroutine", "D4", "leaves a goroutine behind", func(p *referenceDecoder, sh *shared) *mutantDecoder {
			go func() { <-sh.done }()
			return &mutantDecoder{referenceDecoder: p}
		}},
		{"random-keys", "D5", "draws keys at random", after(func(_ *frame.Frame, m *msg.Message) {
			m.Key = rand.Text()
		})},
		{"position-keys", "D5", "keys are positions in the file", after(func(f *frame.Frame, m *msg.Message) {
			m.Key = fmt.Sprint(m.Kind, f.Pos)
		})},
		{"counted-keys", "D5", "keys count the frames", countedKeys},
		{"message-per-delta", "D5", "every delta is a message", messagePerDelta},
		{"other-keys-in-reload", "D5", "the reloaded form has other keys", otherKeysInReload},
		{"other-keys-while-open", "D5", "open messages have other keys than complete ones", func(p *referenceDecoder, _ *shared) *mutantDecoder {
			return &mutantDecoder{referenceDecoder: p, flush: flushed(p, func(m *msg.Message) { m.Key += "/open" })}
		}},
		{"changes-complete", "D6", "emits a complete message again, changed", changesComplete},
		{"drops-unknown", "D7", "drops a frame of an unknown type", onUnknown(func(out *decoder.Output) error {
			last := len(out.Messages) - 1
			out.Messages[last] = msg.Message{}
			out.Messages = out.Messages[:last]
			return nil
		})},
		{"drops-other-types", "D7", "drops a text that is a list, and unknown members", dropsOtherTypes},
		{"fails-on-unknown", "D7", "fails at a frame of an unknown type", onUnknown(func(*decoder.Output) error {
			return errors.New("unknown type")
		})},
		{"fails-on-bad-frame", "D8", "fails at a bad frame", onProblem(func(*decoder.Output) error {
			return errors.New("bad frame")
		})},
		{"two-problems", "D8", "reports two problems for a bad frame", onProblem(func(out *decoder.Output) error {
			out.Problem("bad_frame", "again")
			return nil
		})},
		{"no-problem", "D8", "reports no problem for a bad frame", onProblem(func(out *decoder.Output) error {
			out.Problems = out.Problems[:len(out.Problems)-1]
			return nil
		})},
		{"panics-on-bad-frame", "D8", "panics at a bad frame", onProblem(func(*decoder.Output) error {
			panic("bad frame")
		})},
		{"panics-on-other-type", "D8", "panics at a value of another type than it expects", panicsOnOtherType},
		{"forgets-on-bad-frame", "D8", "drops its open answers at a bad frame", forgetsOnBadFrame},
		{"fails-on-open", "D9", "fails when the stream ends with an open answer", func(p *referenceDecoder, _ *shared) *mutantDecoder {
			return &mutantDecoder{referenceDecoder: p, flush: func(*decoder.Output) error {
				if len(p.Open) > 0 {
					return errors.New("incomplete")
				}
				return nil
			}}
		}},
		{"flush-forgets", "D10", "Flush drops the open answers", func(p *referenceDecoder, _ *shared) *mutantDecoder {
			return &mutantDecoder{referenceDecoder: p, flush: func(out *decoder.Output) error {
				err := p.Flush(out)
				p.Open = nil
				return err
			}}
		}},
		{"flush-completes", "D10", "Flush emits open answers as complete", func(p *referenceDecoder, _ *shared) *mutantDecoder {
			return &mutantDecoder{referenceDecoder: p, flush: flushed(p, func(m *msg.Message) { m.Complete = msg.Complete })}
		}},
		{"grows-snapshot", "D11", "keeps every key for ever", grows(true)},
		{"grows-memory", "D11", "keeps every key for ever, and not in its snapshot", grows(false)},
		{"reuses-text", "D12", "writes over the text that it returned", reusesText},
		{"reuses-attributes", "D12", "changes the attributes that it returned", reusesAttributes},
	}
}

// after changes each message of a frame.
func after(change func(*frame.Frame, *msg.Message)) func(*referenceDecoder, *shared) *mutantDecoder {
	return func(p *referenceDecoder, _ *shared) *mutantDecoder {
		return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Messages)
			err := p.Decode(f, out)
			for i := range out.Messages[n:] {
				change(f, &out.Messages[n+i])
			}
			return err
		}}
	}
}

// flushed changes each message of Flush.
func flushed(p *referenceDecoder, change func(*msg.Message)) func(*decoder.Output) error {
	return func(out *decoder.Output) error {
		n := len(out.Messages)
		err := p.Flush(out)
		for i := range out.Messages[n:] {
			change(&out.Messages[n+i])
		}
		return err
	}
}

// onProblem calls do after a bad frame.
func onProblem(do func(*decoder.Output) error) func(*referenceDecoder, *shared) *mutantDecoder {
	return func(p *referenceDecoder, _ *shared) *mutantDecoder {
		return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Problems)
			if err := p.Decode(f, out); err != nil || len(out.Problems) == n {
				return err
			}
			return do(out)
		}}
	}
}

// onUnknown calls do after a frame of an unknown type.
func onUnknown(do func(*decoder.Output) error) func(*referenceDecoder, *shared) *mutantDecoder {
	return func(p *referenceDecoder, _ *shared) *mutantDecoder {
		return &mutantDecoder{referenceDecoder: p, decode: func(f *frame.Frame, out *decoder.Output) error {
			n := len(out.Messages)
			if err := p.Decode(f, out); err != nil || len(out.Messages) == n || out.Messages[n].Kind != msg.Unknown {
				return err
			}
			return do(out)
		}}
	}
}
