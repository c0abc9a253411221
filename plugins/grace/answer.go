package grace

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// finish decodes the model's own report that a task is done; the task message that follows
// repeats it. Without a task it is the answer.
func (d *stream) finish(r *record) {
	if r.task == "" {
		d.answer(r)
		return
	}
	m := d.addFor(r, msg.Status, r.id())
	m.Hidden, m.Content = true, r.content()
	m.SetAttr("type", "finish")
	m.SetAttr("comments", brief(r.v.Get("comments")))
}

// answer decodes the final answer of a turn, with the files that it made. GRACE also sends one
// for a single task, and then the turn goes on.
func (d *stream) answer(r *record) {
	text := r.content()
	kind := msg.Assistant
	if text.IsZero() {
		kind = msg.Stop
	}
	of := r.task
	r.task = ""
	key := r.id()
	if r.uuid != "" {
		key = "message:" + r.uuid
	}
	m := d.addFor(r, kind, key)
	m.Content, m.Attachments = text, d.files(r)
	m.SetAttr("task_id", of)
	if kind == msg.Assistant {
		d.modelText(m)
	}
	if of == "" {
		d.endRun(m, "stop", d.Turn.Failed)
	}
}

// runError decodes an error of a task or of the whole run. Its status is success and does not
// help.
func (d *stream) runError(r *record) {
	m := d.addFor(r, msg.Error, r.id())
	m.IsError, m.Content, m.Attachments = true, r.content(), d.files(r)
	m.SetAttr("error_type", "agent_error")
	r.setStatus(m)
	m.SetAttr("comments", brief(r.json.Get("comments")))
	m.Signal, m.FinishReason = msg.RunEnd, "error"
	d.Turn.Failed = true
	if r.task == "" {
		d.Turn.Ended = true
	} else {
		d.setTitle(m, r.task)
		d.addDelegationResult(r, true)
	}
}

// runStop decodes the stop of a run, by the user or after a failed task.
func (d *stream) runStop(r *record) {
	of := r.task
	r.task = ""
	m := d.addFor(r, msg.Stop, r.id())
	m.SetAttr("task_id", of)
	m.Content, m.Attachments = r.content(), d.files(r)
	reason := "interrupted"
	if d.Turn.Failed {
		reason = "error"
	}
	d.endRun(m, reason, true)
}

// files are the files that the message names.
func (d *stream) files(r *record) []msg.Attachment { return files(r.json) }

// base is the name of the file at a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// files are the files of a list:
//
//	[{"filepath":"/w/report.md","filename":"report.md","url":"…","filesize":1234}]
func files(list jsonv.Value) []msg.Attachment {
	const most = 256
	var out []msg.Attachment
	for v := range list.Elems() {
		path, name := v.Get("filepath"), v.First("filename", "name")
		if path.PeekStr() == "" && name.PeekStr() == "" || len(out) == most {
			continue
		}
		a := msg.Attachment{Size: max(v.First("filesize", "size").Int(), 0)}
		if a.URL = brief(stringOnly(v.Get("url"))); strings.HasSuffix(path.PeekStr(), a.URL) { // none, or relative
			a.URL = brief(stringOnly(path))
		}
		if a.Name = limited(stringOnly(name), ident.Max); a.Name == "" {
			a.Name = cut(base(path.PeekStr()), ident.Max)
		}
		out = append(out, a)
	}
	return out
}
