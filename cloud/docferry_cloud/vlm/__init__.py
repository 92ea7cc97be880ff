"""The full model: a vision language model of MinerU's kind, in this process or on servers that speak OpenAI's API.

`prompts` says what is asked, `layout`, `otsl`, `latex`, `picture` and `answers` read what comes back; these are pure.
"""
