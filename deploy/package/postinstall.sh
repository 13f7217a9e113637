#!/bin/sh
# A first installation starts nothing: the settings are the administrator's. An upgrade restarts a gateway that runs.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart sluice.service
fi
