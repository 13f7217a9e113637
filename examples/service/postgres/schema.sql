create table if not exists resource (
    kind text, namespace text, name text,
    uid uuid not null default gen_random_uuid(),
    tag uuid not null default gen_random_uuid(),
    write_id text not null,
    labels jsonb not null, annotations jsonb not null, description text not null,
    spec jsonb not null, status jsonb not null,
    created_at timestamptz not null default now(),
    primary key (kind, namespace, name)
);

-- The transaction that has changed a key last, also of a key whose resource was deleted.
create table if not exists change (
    kind text, namespace text, name text,
    transaction xid8 not null,
    primary key (kind, namespace, name)
);
create index if not exists change_transaction on change (transaction);

-- Positions of another history are expired. Give it another id after a dump was restored.
create table if not exists history (id uuid not null);
insert into history select gen_random_uuid() where not exists (select 1 from history);
