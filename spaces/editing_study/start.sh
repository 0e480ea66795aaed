#!/bin/sh
# Serves a study with people. Variables:
#   STUDY_DATASET              private data set with the study, which gets what is sent; without it a study to try
#   MUSIC_EVALS_STUDY_SECRET   opens /organiser; without it one is made, and printed in the log
#   HF_TOKEN                   may write to the data set
set -e
STUDY="${STUDY_FOLDER:-$HOME/study}"
if [ -n "$STUDY_DATASET" ]; then
  set -- --hub "$STUDY_DATASET"
elif [ ! -e "$STUDY" ]; then
  music-evals editing-test demo --out "$STUDY"
fi
exec music-evals editing-test serve "$STUDY" --host 0.0.0.0 --port "${PORT:-7860}" "$@"
