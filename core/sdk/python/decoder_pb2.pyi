from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

AGENT_KIND_AGENT: AgentKind
AGENT_KIND_HUMAN: AgentKind
AGENT_KIND_NONE: AgentKind
AGENT_KIND_TEAM: AgentKind
AGENT_KIND_WORKFLOW: AgentKind
COMPLETENESS_COMPLETE: Completeness
COMPLETENESS_PARTIAL: Completeness
COMPLETENESS_SUMMARY: Completeness
DESCRIPTOR: _descriptor.FileDescriptor
FRAME_KIND_BINARY: FrameKind
FRAME_KIND_BODY: FrameKind
FRAME_KIND_CLOSE: FrameKind
FRAME_KIND_EVENT: FrameKind
FRAME_KIND_LINE: FrameKind
FRAME_KIND_REQUEST: FrameKind
FRAME_KIND_TEXT: FrameKind
KIND_ASSISTANT: Kind
KIND_DELEGATION: Kind
KIND_DELEGATION_RESULT: Kind
KIND_ERROR: Kind
KIND_FILE: Kind
KIND_PLAN: Kind
KIND_REASONING: Kind
KIND_STATUS: Kind
KIND_STOP: Kind
KIND_SYSTEM: Kind
KIND_TASK: Kind
KIND_TOOL_CALL: Kind
KIND_TOOL_RESULT: Kind
KIND_UNKNOWN: Kind
KIND_USAGE: Kind
KIND_USER: Kind
LINK_METHOD_FORK_ID: LinkMethod
LINK_METHOD_META_FILE: LinkMethod
LINK_METHOD_NATIVE_ID: LinkMethod
LINK_METHOD_NONE: LinkMethod
LINK_METHOD_ORDER: LinkMethod
LINK_METHOD_PARENT_RUN: LinkMethod
LINK_METHOD_PROMPT: LinkMethod
LINK_METHOD_TRACEPARENT: LinkMethod
PRECISION_INFERRED: Precision
PRECISION_MICROS: Precision
PRECISION_MILLIS: Precision
PRECISION_NANOS: Precision
PRECISION_SECONDS: Precision
PROVENANCE_ESTIMATED: Provenance
PROVENANCE_NONE: Provenance
PROVENANCE_PROVIDER: Provenance
PROVENANCE_TRANSCRIPT_FINAL: Provenance
PROVENANCE_TRANSCRIPT_PARTIAL: Provenance
ROLE_ASSISTANT: Role
ROLE_NONE: Role
ROLE_SYSTEM: Role
ROLE_TOOL: Role
ROLE_USER: Role
SIGNAL_COMPACTION: Signal
SIGNAL_FIRST_TOKEN: Signal
SIGNAL_LINK: Signal
SIGNAL_MODEL_END: Signal
SIGNAL_MODEL_START: Signal
SIGNAL_NONE: Signal
SIGNAL_RETRY: Signal
SIGNAL_RUN_END: Signal
SIGNAL_RUN_PAUSE: Signal
SIGNAL_RUN_RESUME: Signal
SIGNAL_RUN_START: Signal
SIGNAL_WAIT_END: Signal
SIGNAL_WAIT_START: Signal

class Attachment(_message.Message):
    __slots__ = ["media_type", "name", "sha256", "size", "url"]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    name: str
    sha256: str
    size: int
    url: str
    def __init__(self, name: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., sha256: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class Attr(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ["close", "data", "flush", "frames", "open", "snapshot", "stream"]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    FLUSH_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    close: bool
    data: bytes
    flush: bool
    frames: _containers.RepeatedCompositeFieldContainer[Frame]
    open: Open
    snapshot: bool
    stream: int
    def __init__(self, stream: _Optional[int] = ..., open: _Optional[_Union[Open, _Mapping]] = ..., data: _Optional[bytes] = ..., frames: _Optional[_Iterable[_Union[Frame, _Mapping]]] = ..., flush: bool = ..., snapshot: bool = ..., close: bool = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ["options"]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    options: str
    def __init__(self, options: _Optional[str] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ["problems"]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, problems: _Optional[_Iterable[str]] = ...) -> None: ...

class DecodeRequest(_message.Message):
    __slots__ = ["batches"]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[Batch]
    def __init__(self, batches: _Optional[_Iterable[_Union[Batch, _Mapping]]] = ...) -> None: ...

class DecodeResponse(_message.Message):
    __slots__ = ["results"]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class Delegate(_message.Message):
    __slots__ = ["child_run", "confidence", "correlation_id", "correlation_prompt", "link", "task", "task_at", "to", "to_id"]
    ASYNC_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_PROMPT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    TASK_AT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    child_run: str
    confidence: int
    correlation_id: str
    correlation_prompt: str
    link: LinkMethod
    task: str
    task_at: Range
    to: str
    to_id: str
    def __init__(self, to: _Optional[str] = ..., task: _Optional[str] = ..., task_at: _Optional[_Union[Range, _Mapping]] = ..., child_run: _Optional[str] = ..., link: _Optional[_Union[LinkMethod, str]] = ..., confidence: _Optional[int] = ..., correlation_id: _Optional[str] = ..., correlation_prompt: _Optional[str] = ..., to_id: _Optional[str] = ..., **kwargs) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ["documents", "local_ids", "metadata_files", "name", "options_schema", "pages", "reload", "resume", "revision", "snapshots", "summary", "tables", "transports", "version"]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_IDS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FILES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    RELOAD_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    TRANSPORTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedScalarFieldContainer[str]
    local_ids: bool
    metadata_files: _containers.RepeatedScalarFieldContainer[str]
    name: str
    options_schema: str
    pages: str
    reload: bool
    resume: str
    revision: int
    snapshots: bool
    summary: str
    tables: str
    transports: _containers.RepeatedScalarFieldContainer[FrameKind]
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., revision: _Optional[int] = ..., summary: _Optional[str] = ..., transports: _Optional[_Iterable[_Union[FrameKind, str]]] = ..., metadata_files: _Optional[_Iterable[str]] = ..., options_schema: _Optional[str] = ..., reload: bool = ..., snapshots: bool = ..., local_ids: bool = ..., resume: _Optional[str] = ..., pages: _Optional[str] = ..., tables: _Optional[str] = ..., documents: _Optional[_Iterable[str]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ["error", "frame", "permanent"]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    error: str
    frame: int
    permanent: bool
    def __init__(self, error: _Optional[str] = ..., permanent: bool = ..., frame: _Optional[int] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ["from_client", "id", "kind", "length", "name", "observed", "skip"]
    FROM_CLIENT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    from_client: bool
    id: str
    kind: FrameKind
    length: int
    name: str
    observed: int
    skip: int
    def __init__(self, length: _Optional[int] = ..., skip: _Optional[int] = ..., kind: _Optional[_Union[FrameKind, str]] = ..., from_client: bool = ..., name: _Optional[str] = ..., id: _Optional[str] = ..., observed: _Optional[int] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ["agent_id", "agent_kind", "agent_name", "attachments", "attrs", "client_branch", "client_host", "client_project", "client_user", "client_version", "complete", "content", "content_at", "delegation", "finish_reason", "frame", "hidden", "is_error", "key", "kind", "model", "parent_call", "parent_key", "parent_run", "precision", "provider", "response_id", "role", "run", "session", "signal", "time", "title", "tool_arguments", "tool_arguments_at", "tool_call_id", "tool_duration", "tool_error_type", "tool_internal", "tool_name", "tool_protocol_id", "tool_server", "usage"]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_KIND_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    ATTRS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PROJECT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_USER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_AT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PARENT_CALL_FIELD_NUMBER: _ClassVar[int]
    PARENT_KEY_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TOOL_ARGUMENTS_AT_FIELD_NUMBER: _ClassVar[int]
    TOOL_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_DURATION_FIELD_NUMBER: _ClassVar[int]
    TOOL_ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    TOOL_INTERNAL_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_PROTOCOL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_SERVER_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    agent_kind: AgentKind
    agent_name: str
    attachments: _containers.RepeatedCompositeFieldContainer[Attachment]
    attrs: _containers.RepeatedCompositeFieldContainer[Attr]
    client_branch: str
    client_host: str
    client_project: str
    client_user: str
    client_version: str
    complete: Completeness
    content: str
    content_at: Range
    delegation: Delegate
    finish_reason: str
    frame: int
    hidden: bool
    is_error: bool
    key: str
    kind: Kind
    model: str
    parent_call: str
    parent_key: str
    parent_run: str
    precision: Precision
    provider: str
    response_id: str
    role: Role
    run: str
    session: str
    signal: Signal
    time: int
    title: str
    tool_arguments: str
    tool_arguments_at: Range
    tool_call_id: str
    tool_duration: int
    tool_error_type: str
    tool_internal: bool
    tool_name: str
    tool_protocol_id: str
    tool_server: str
    usage: Tokens
    def __init__(self, frame: _Optional[int] = ..., key: _Optional[str] = ..., session: _Optional[str] = ..., run: _Optional[str] = ..., kind: _Optional[_Union[Kind, str]] = ..., role: _Optional[_Union[Role, str]] = ..., content: _Optional[str] = ..., content_at: _Optional[_Union[Range, _Mapping]] = ..., time: _Optional[int] = ..., precision: _Optional[_Union[Precision, str]] = ..., complete: _Optional[_Union[Completeness, str]] = ..., agent_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., tool_arguments: _Optional[str] = ..., tool_arguments_at: _Optional[_Union[Range, _Mapping]] = ..., tool_server: _Optional[str] = ..., tool_error_type: _Optional[str] = ..., tool_internal: bool = ..., agent_kind: _Optional[_Union[AgentKind, str]] = ..., parent_key: _Optional[str] = ..., parent_run: _Optional[str] = ..., parent_call: _Optional[str] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., response_id: _Optional[str] = ..., finish_reason: _Optional[str] = ..., is_error: bool = ..., hidden: bool = ..., signal: _Optional[_Union[Signal, str]] = ..., attrs: _Optional[_Iterable[_Union[Attr, _Mapping]]] = ..., attachments: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., usage: _Optional[_Union[Tokens, _Mapping]] = ..., delegation: _Optional[_Union[Delegate, _Mapping]] = ..., tool_duration: _Optional[int] = ..., tool_protocol_id: _Optional[str] = ..., client_project: _Optional[str] = ..., client_branch: _Optional[str] = ..., client_version: _Optional[str] = ..., client_host: _Optional[str] = ..., client_user: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ["options", "origin", "snapshot", "source"]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    options: str
    origin: str
    snapshot: bytes
    source: str
    def __init__(self, origin: _Optional[str] = ..., options: _Optional[str] = ..., snapshot: _Optional[bytes] = ..., source: _Optional[str] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ["detail", "frame", "reason"]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    detail: str
    frame: int
    reason: str
    def __init__(self, frame: _Optional[int] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ["length", "offset", "quoted"]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    QUOTED_FIELD_NUMBER: _ClassVar[int]
    length: int
    offset: int
    quoted: bool
    def __init__(self, offset: _Optional[int] = ..., length: _Optional[int] = ..., quoted: bool = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ["failure", "messages", "problems", "snapshot", "stream"]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    failure: Failure
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    snapshot: bytes
    stream: int
    def __init__(self, stream: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ..., snapshot: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class Tokens(_message.Message):
    __slots__ = ["cache_read", "cache_write", "cache_write1h", "input", "output", "provenance", "reasoning"]
    CACHE_READ_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE1H_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    cache_read: int
    cache_write: int
    cache_write1h: int
    input: int
    output: int
    provenance: Provenance
    reasoning: int
    def __init__(self, input: _Optional[int] = ..., output: _Optional[int] = ..., cache_read: _Optional[int] = ..., cache_write: _Optional[int] = ..., reasoning: _Optional[int] = ..., provenance: _Optional[_Union[Provenance, str]] = ..., cache_write1h: _Optional[int] = ...) -> None: ...

class FrameKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class AgentKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Precision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Completeness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Signal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class LinkMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Provenance(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
